$(eval $(call room,emu/lib,))
