// Stands before the OpenCL loader, so that ARM Compute Library 20.08 runs on pocl. It asks for an extension of
// Arm's that pocl has under no name, hands its compiler an option for it, has kernels for `half` among those
// for `float` (they are compiled and not run; here they become such for float), and divides by a zero whose
// result is multiplied by zero: harmless on a GPU, but a compiler may take it for code that is never run.

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CL_DEVICE_EXTENSIONS 0x1030
#define CL_INVALID_VALUE (-30)
#define CL_OUT_OF_HOST_MEMORY (-6)

static const char kExtension[] = " cl_arm_non_uniform_work_group_size";
static const char kOption[] = "-cl-arm-non-uniform-work-group-size";
static const char kDivision[] = "STRUCT_NO_STEP(dst, 0)";
static const char kHalf[] =
    "#define half float\n#define half2 float2\n#define half3 float3\n#define half4 float4\n#define half8 float8\n"
    "#define half16 float16\n#define convert_half convert_float\n#define convert_half2 convert_float2\n"
    "#define convert_half3 convert_float3\n#define convert_half4 convert_float4\n"
    "#define convert_half8 convert_float8\n#define convert_half16 convert_float16\n";

static void *real(const char *name) {
    static void *loader = NULL;
    if (loader == NULL) {
        loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
    }
    return loader == NULL ? NULL : dlsym(loader, name);
}

int32_t clGetDeviceInfo(void *device, uint32_t what, size_t size, void *value, size_t *used) {
    int32_t (*get)(void *, uint32_t, size_t, void *, size_t *) = real("clGetDeviceInfo");
    char text[16384];
    int32_t code;
    size_t length;
    if (what != CL_DEVICE_EXTENSIONS) {
        return get(device, what, size, value, used);
    }
    code = get(device, what, sizeof(text) - sizeof(kExtension), text, NULL);
    if (code != 0) {
        return code;
    }
    strcat(text, kExtension);
    length = strlen(text) + 1;
    if (used != NULL) {
        *used = length;
    }
    if (value != NULL && size < length) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL) {
        memcpy(value, text, length);
    }
    return 0;
}

void *clCreateProgramWithSource(void *context, uint32_t count, const char **texts, const size_t *lengths,
                                int32_t *code) {
    void *(*create)(void *, uint32_t, const char **, const size_t *, int32_t *) = real("clCreateProgramWithSource");
    char *source = strdup(kHalf);
    size_t size = sizeof(kHalf) - 1;
    void *program;
    for (uint32_t i = 0; source != NULL && i < count; ++i) {
        const size_t length = lengths != NULL && lengths[i] != 0 ? lengths[i] : strlen(texts[i]);
        char *longer = realloc(source, size + length + 1);
        if (longer == NULL) {
            free(source);
        } else {
            memcpy(longer + size, texts[i], length);
            size += length;
            longer[size] = '\0';
        }
        source = longer;
    }
    if (source == NULL) {
        *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    for (char *at = source; (at = strstr(at, kDivision)) != NULL;) {
        at[sizeof(kDivision) - 3] = '1';
    }
    program = create(context, 1, (const char **)&source, NULL, code);
    free(source);
    return program;
}

int32_t clBuildProgram(void *program, uint32_t count, const void *devices, const char *options, void *notify,
                       void *data) {
    int32_t (*build)(void *, uint32_t, const void *, const char *, void *, void *) = real("clBuildProgram");
    char *kept = strdup(options == NULL ? "" : options);
    int32_t code;
    if (kept == NULL) {
        return CL_OUT_OF_HOST_MEMORY;
    }
    for (char *at; (at = strstr(kept, kOption)) != NULL;) {
        memset(at, ' ', sizeof(kOption) - 1);
    }
    code = build(program, count, devices, kept, notify, data);
    free(kept);
    return code;
}
