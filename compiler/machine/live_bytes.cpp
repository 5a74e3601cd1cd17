// Counts the bytes that torch's CPU allocator has handed out: now, and at most since the last restart.
//
// torch has such counters for CUDA and not for the CPU. This allocator asks the one that was set before for every
// block, notes the size by address, and frees through the deleter of that one. Blocks that other allocators made, or
// that were made before, are not counted. Locks are taken around a fork, so a data loader's worker never starts with
// one that nobody will release.

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace {

struct Shard {
  std::mutex lock;
  std::unordered_map<void*, size_t> sizes;
};

// Never destroyed: tensors of other libraries may be freed after this one's destructors would have run.
std::array<Shard, 64>& shards = *new std::array<Shard, 64>();
std::atomic<int64_t> live{0}, peak{0};
at::Allocator* base = nullptr;
c10::DeleterFnPtr base_deleter = nullptr;

Shard& shard_of(void* block) {
  return shards[(reinterpret_cast<uintptr_t>(block) >> 6) % shards.size()];
}

void add(int64_t bytes) {
  int64_t now = live.fetch_add(bytes) + bytes, highest = peak.load();
  while (now > highest && !peak.compare_exchange_weak(highest, now)) {
  }
}

void free_block(void* block) {
  {
    auto& shard = shard_of(block);
    std::lock_guard<std::mutex> held(shard.lock);
    auto found = shard.sizes.find(block);
    if (found != shard.sizes.end()) {
      live.fetch_sub(static_cast<int64_t>(found->second));
      shard.sizes.erase(found);
    }
  }
  base_deleter(block);
}

struct CountingAllocator final : at::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    at::DataPtr block = base->allocate(bytes);
    void* address = block.get();
    if (address == nullptr || block.get_context() != address ||
        !block.compare_exchange_deleter(base_deleter, &free_block)) {
      return block;
    }
    {
      auto& shard = shard_of(address);
      std::lock_guard<std::mutex> held(shard.lock);
      shard.sizes[address] = bytes;
    }
    add(static_cast<int64_t>(bytes));
    return block;
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return &free_block;
  }

  void copy_data(void* to, const void* from, std::size_t count) const override {
    base->copy_data(to, from, count);
  }
};

void lock_all() {
  for (auto& shard : shards) shard.lock.lock();
}

void unlock_all() {
  for (auto& shard : shards) shard.lock.unlock();
}

}  // namespace

extern "C" {

// 1 where blocks are counted from now on, 0 where the current allocator cannot be wrapped.
int autockpt_count() {
  if (base != nullptr) return 1;
  auto* current = c10::GetCPUAllocator();
  base_deleter = current->raw_deleter();
  if (base_deleter == nullptr) return 0;
  base = current;
  pthread_atfork(&lock_all, &unlock_all, &unlock_all);
  auto* counting = new CountingAllocator();
  c10::SetCPUAllocator(counting, /*priority=*/255);
  return c10::GetCPUAllocator() == counting ? 1 : 0;
}

int64_t autockpt_live() {
  return live.load();
}

// The highest since the last call of this function, or since counting began.
int64_t autockpt_restart_peak() {
  return peak.exchange(live.load());
}
}
