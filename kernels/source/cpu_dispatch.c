/* Selection of the kernels that this processor can run. */
#include <stddef.h>
#include <string.h>

#include "kernels.h"

extern const Kernels kernels_portable;

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

extern const Kernels kernels_avx2, kernels_avx2one, kernels_avxvnni, kernels_avx512vnni, kernels_amx;

/* Bits of CPUID leaves 1 and 7, and of XCR0, the register with the parts of the state that the system saves. Source: Intel
 * 64 and IA-32 Architectures Software Developer's Manual, volumes 1 (chapter 13) and 2 (CPUID). */
enum {
    FMA = 1 << 12, OSXSAVE = 1 << 27,                             /* leaf 1, ECX */
    AVX2 = 1 << 5, AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512CD = 1 << 28, AVX512BW = 1 << 30, /* leaf 7, EBX */
    AVX512VNNI = 1 << 11,                                         /* leaf 7, ECX */
    AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25,                       /* leaf 7, EDX */
    AVXVNNI = 1 << 4,                                             /* leaf 7, subleaf 1, EAX */
    YMM_STATE = 0x06, ZMM_STATE = 0xe6, TILE_STATE = 0x60000,
};
#define AVX512VL (1u << 31) /* leaf 7, EBX */

static int has_all(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

/* Linux lets a process use tiles only after it has asked; threads and forked processes inherit that. Source:
 * Documentation/arch/x86/xstate.rst of Linux. */
static int may_use_tiles(void) {
#if defined(__linux__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return 0;
#endif
}

static int can_run(const Kernels *kernels) {
    uint32_t eax, ebx, ecx, edx, state, state_high;
    if (kernels == &kernels_portable) return 1;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !has_all(ecx, FMA | OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(state), "=d"(state_high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !has_all(ebx, AVX2)) return 0;
    if (kernels == &kernels_avx2 || kernels == &kernels_avx2one) return has_all(state, YMM_STATE);
    if (kernels == &kernels_avxvnni) {
        return has_all(state, YMM_STATE) && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && has_all(eax, AVXVNNI);
    }
    if (!has_all(state, ZMM_STATE) || !has_all(ebx, AVX512F | AVX512DQ | AVX512CD | AVX512BW | AVX512VL) ||
        !has_all(ecx, AVX512VNNI)) {
        return 0;
    }
    return kernels == &kernels_avx512vnni ||
           (has_all(state, TILE_STATE) && has_all(edx, AMX_TILE | AMX_INT8) && may_use_tiles());
}

/* Whether this processor has AVX2 and one unit for integer multiplications: AMD Zen to Zen 2 and Hygon Dhyana (families 17h
 * and 18h), Intel Haswell and Broadwell. Sources: AMD64 Architecture Programmer's Manual, volume 3, and Intel's manual,
 * volume 2, for the numbers of families and models; volume 4 for those of Intel's processors. */
static int has_one_multiplier(void) {
    static const uint8_t haswell_and_broadwell[] = {0x3c, 0x3d, 0x3f, 0x45, 0x46, 0x47, 0x4f, 0x56};
    uint32_t eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return 0;
    const uint32_t base = eax >> 8 & 0xf, family = base == 0xf ? base + (eax >> 20 & 0xff) : base;
    const uint32_t model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
    if (family == 6) return memchr(haswell_and_broadwell, (int)model, sizeof haswell_and_broadwell) != NULL;
    return family == 0x17 || family == 0x18;
}

static int is_best(const Kernels *kernels) { return kernels != &kernels_avx2one || has_one_multiplier(); }

static const Kernels *const all[] = {&kernels_amx,     &kernels_avx512vnni, &kernels_avxvnni,
                                     &kernels_avx2one, &kernels_avx2,       &kernels_portable};
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

extern const Kernels kernels_dotprod, kernels_i8mm;

/* Bits of what Linux says about an Arm processor. Source: Documentation/arch/arm64/elf_hwcaps.rst of Linux. */
enum { DOTPROD = 1 << 20, /* AT_HWCAP */ I8MM = 1 << 13 /* AT_HWCAP2 */ };

static int can_run(const Kernels *kernels) {
    const int has_dotprod = (getauxval(AT_HWCAP) & DOTPROD) != 0, has_i8mm = (getauxval(AT_HWCAP2) & I8MM) != 0;
    if (kernels == &kernels_i8mm) return has_dotprod && has_i8mm;
    return kernels != &kernels_dotprod || has_dotprod;
}

static int is_best(const Kernels *kernels) { return kernels != NULL; }

static const Kernels *const all[] = {&kernels_i8mm, &kernels_dotprod, &kernels_portable};
#else
static int can_run(const Kernels *kernels) { return kernels != NULL; }

static int is_best(const Kernels *kernels) { return kernels != NULL; }

static const Kernels *const all[] = {&kernels_portable};
#endif

const Kernels *choose_kernels(const char *name) {
    const int is_named = name != NULL && *name != 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if ((is_named ? strcmp(name, all[i]->name) == 0 : is_best(all[i])) && can_run(all[i])) return all[i];
    }
    return NULL;
}
