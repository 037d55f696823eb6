// Counts what is allocated while a generated program runs: by the program itself, and by the libraries of its
// back ends, whose calls are told by the file that they come from.
#include "network.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

extern "C" {
void *__libc_malloc(std::size_t size);
void *__libc_calloc(std::size_t count, std::size_t size);
void *__libc_realloc(void *memory, std::size_t size);
void *__libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<bool> counting{false};
std::atomic<long> own{0};
std::atomic<long> of_libraries{0};

void count(void *caller) {
    if (counting.load()) {
        Dl_info info{};
        const bool library = dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
                             (std::strstr(info.dli_fname, "libdnnl") != nullptr || std::strstr(info.dli_fname, "libgomp") != nullptr);
        (library ? of_libraries : own).fetch_add(1);
    }
}

}  // namespace

extern "C" void *malloc(std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

extern "C" void *calloc(std::size_t times, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_calloc(times, size);
}

extern "C" void *realloc(void *memory, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_realloc(memory, size);
}

extern "C" void *memalign(std::size_t alignment, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

extern "C" void *aligned_alloc(std::size_t alignment, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

extern "C" int posix_memalign(void **memory, std::size_t alignment, std::size_t size) {
    count(__builtin_return_address(0));
    *memory = __libc_memalign(alignment, size);
    return *memory == nullptr ? 12 : 0;
}

[[gnu::noinline]] void *operator new(std::size_t size) {
    count(__builtin_return_address(0));
    if (void *memory = __libc_malloc(size)) {
        return memory;
    }
    throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void *memory) noexcept {
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void *memory, std::size_t /*size*/) noexcept {
    std::free(memory);
}

using NAMESPACE::Network;

int main(int words, char **texts) {
    constexpr std::size_t kBatch = 4;
    try {
        parapipe::Cores cores;
        for (int i = 2; i < words; ++i) {
            parapipe::add_cores(texts[i], cores);
        }
        Network network;
        network.load(texts[1], cores);
        const auto &plan = network.program().plan();
        std::vector<std::vector<float>> room;
        std::vector<Network::Inputs> inputs(kBatch);
        std::vector<Network::Outputs> outputs(kBatch);
        for (std::size_t i = 0; i < kBatch; ++i) {
            for (std::size_t k = 0; k < inputs[i].size(); ++k) {
                room.emplace_back(plan.tensors[plan.inputs[k]].elements(), 0.5F);
                inputs[i][k] = room.back().data();
            }
            for (std::size_t k = 0; k < outputs[i].size(); ++k) {
                room.emplace_back(plan.tensors[plan.outputs[k]].elements());
                outputs[i][k] = room.back().data();
            }
        }
        counting.store(true);
        std::vector<int> seen(8);  // so that a count of 0 is no mistake of counting
        counting.store(false);
        const auto before = own.exchange(0);
        counting.store(true);
        for (int call = 0; call < 3; ++call) {
            network.run(inputs[0], outputs[0]);
            network.run(inputs.data(), outputs.data(), kBatch);
        }
        counting.store(false);
        std::printf("%ld %ld %ld\n", before, own.load(), of_libraries.load());
        return seen.size() == 8 ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
