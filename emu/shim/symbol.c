// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lookup of symbols in loaded objects, like dlsym(), which before glibc 2.34 was in libdl, which programs need not
 * load. Uses only the tables of the ELF specification and the GNU hash section.
 */
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/shim/shim.h"

#define VERSION_HIDDEN 0x8000 /* of an entry of DT_VERSYM: not the default version */

struct object {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash;
	const ElfW(Versym) * versions;
};

/* All uses of REAL() */
extern struct shim_symbol symbols_start[] __asm__("__start_shim_symbols") __attribute__((visibility("hidden")));
extern struct shim_symbol symbols_end[] __asm__("__stop_shim_symbols") __attribute__((visibility("hidden")));

/* The dynamic linker has relocated the addresses in most dynamic sections, but not in the vDSO's. */
static const void *object_at(const struct object *o, uintptr_t at)
{
	return (const void *)(at < o->base ? at + o->base : at);
}

static void object_read(struct object *o, const ElfW(Dyn) * d)
{
	for (; d->d_tag != DT_NULL; d++) {
		const void *at = object_at(o, d->d_un.d_ptr);

		if (d->d_tag == DT_SYMTAB)
			o->symbols = at;
		else if (d->d_tag == DT_STRTAB)
			o->strings = at;
		else if (d->d_tag == DT_GNU_HASH)
			o->gnu_hash = at;
		else if (d->d_tag == DT_HASH)
			o->hash = at;
		else if (d->d_tag == DT_VERSYM)
			o->versions = at;
	}
}

/* Is it the definition of the name, in the default version? */
static bool symbol_is(const struct object *o, uint32_t i, const char *name)
{
	const ElfW(Sym) *s = &o->symbols[i];
	unsigned int type = s->st_info & 0xf;

	return s->st_shndx != SHN_UNDEF && s->st_value && (type == STT_FUNC || type == STT_OBJECT) &&
	       !(o->versions && o->versions[i] & VERSION_HIDDEN) && !strcmp(o->strings + s->st_name, name);
}

static uint32_t find_gnu(const struct object *o, const char *name)
{
	uint32_t nbuckets = o->gnu_hash[0], first = o->gnu_hash[1], words = o->gnu_hash[2], shift = o->gnu_hash[3];
	const ElfW(Addr) *bloom = (const void *)(o->gnu_hash + 4);
	const uint32_t *buckets = (const void *)(bloom + words), *chain = buckets + nbuckets;
	const uint32_t bits = 8 * sizeof(*bloom);
	uint32_t h = 5381, i;
	ElfW(Addr) word;
	const char *c;

	for (c = name; *c; c++)
		h = h * 33 + (unsigned char)*c;
	word = words ? bloom[h / bits % words] : 0;
	if (!(word >> h % bits & word >> (h >> shift) % bits & 1))
		return 0;
	i = nbuckets ? buckets[h % nbuckets] : 0;
	if (i < first)
		return 0;
	for (;; i++) {
		if ((chain[i - first] | 1) == (h | 1) && symbol_is(o, i, name))
			return i;
		if (chain[i - first] & 1)
			return 0;
	}
}

static uint32_t find_sysv(const struct object *o, const char *name)
{
	const uint32_t *buckets = o->hash + 2, *chain = buckets + o->hash[0];
	uint32_t h = 0, i;
	const char *c;

	for (c = name; *c; c++) {
		h = (h << 4) + (unsigned char)*c;
		h = (h ^ (h >> 24 & 0xf0)) & 0xfffffff;
	}
	for (i = o->hash[0] ? buckets[h % o->hash[0]] : 0; i && !symbol_is(o, i, name); i = chain[i])
		;
	return i;
}

static bool is_own(const struct dl_phdr_info *info)
{
	uintptr_t here = (uintptr_t)is_own;
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && here - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* @passed: this library was visited: only objects after it count. */
static int object_visit(struct dl_phdr_info *info, size_t size, void *passed)
{
	struct object o = { .base = info->dlpi_addr };
	struct shim_symbol *s;
	uint32_t found;
	int i;

	if (!*(bool *)passed) {
		*(bool *)passed = is_own(info);
		return 0;
	}
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			object_read(&o, (const void *)(o.base + info->dlpi_phdr[i].p_vaddr));
	if (!o.symbols || !o.strings || !(o.gnu_hash || o.hash))
		return 0;
	for (s = symbols_start; (uintptr_t)s < (uintptr_t)symbols_end; s++) {
		if (__atomic_load_n(&s->found, __ATOMIC_RELAXED))
			continue;
		found = o.gnu_hash ? find_gnu(&o, s->name) : find_sysv(&o, s->name);
		if (found)
			__atomic_store_n(&s->found, (void *)(o.base + o.symbols[found].st_value), __ATOMIC_RELAXED);
	}
	return 0;
}

/*
 * All at once, before the program's threads start: dl_iterate_phdr() takes a lock of the dynamic linker, which stays
 * locked in the child if another thread has it during fork().
 */
__attribute__((constructor(101))) static void symbols_find(void)
{
	bool passed = false;

	dl_iterate_phdr(object_visit, &passed);
}

/* A constructor of another library is earlier, perhaps, and dlopen() may load a library that has it. */
void *shim_real(struct shim_symbol *s)
{
	if (!__atomic_load_n(&s->found, __ATOMIC_RELAXED))
		symbols_find();
	return __atomic_load_n(&s->found, __ATOMIC_RELAXED);
}

/*
 * Another C library loads this library if it has all functions that are called here, but its structures differ. musl
 * (Alpine) is detected by a symbol that it does not have. The message is printed once: children have no preload
 * library.
 */
#pragma weak gnu_get_libc_version
__attribute__((constructor)) static void libc_check(void)
{
	if (&gnu_get_libc_version || !getenv("MUSLIN_HOST"))
		return;
	fputs("muslin: the C library of this image is not glibc but another (musl?): its programs find no RDMA "
	      "device\n",
	      stderr);
	unsetenv("LD_PRELOAD");
	unsetenv("MUSLIN_HOST");
}
