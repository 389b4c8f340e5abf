$(eval $(call module,emu/lib,))
