// A fake CUDA device where none is found, for tracing: autograd accepts fake tensors on it. A build of torch with CUDA
// has a guard and hooks of its own, which are exchanged like the empty ones of a build without.
//
// Installed in a running process by autockpt_begin, removed by autockpt_end. It runs no kernel and holds no memory.
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/autograd/engine.h>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

const Device kDevice(DeviceType::CUDA, 0);

// One device, one stream; events are always complete.
struct TracingGuard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device getDevice() const override { return kDevice; }
  Device exchangeDevice(Device) const override { return kDevice; }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  DeviceIndex deviceCount() const noexcept override { return 1; }
  Stream getStream(Device) const override { return Stream(Stream::DEFAULT, kDevice); }
  Stream getNewStream(Device, int) const override { return Stream(Stream::DEFAULT, kDevice); }
  Stream exchangeStream(Stream stream) const override { return stream; }
  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
};

// Reports that CUDA is built and available, which is all that tracing needs; what needs a real device still throws.
struct TracingHooks final : at::CUDAHooksInterface {
  bool isBuilt() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return false; }
  // Convolutions are cuDNN's, whose results are channels-last if an input is.
  bool hasCuDNN() const override { return true; }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
  long versionCuDNN() const override { return 91000; }
  long versionRuntimeCuDNN() const override { return 91000; }
  double batchnormMinEpsilonCuDNN() const override { return 0.0; }
};

bool has_flash = true;  // from sm80 on

// The attention kernel that torch chooses on CUDA, by the main rules of its own function.
int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double /*dropout*/, bool /*is_causal*/, std::optional<double> /*scale*/, bool shares_keys) {
  using at::SDPBackend;
  const auto dtype = query.scalar_type();
  const bool low = dtype == at::kHalf || dtype == at::kBFloat16;
  const auto size = query.sym_size(-1);
  const bool dense = query.dim() == 4 && query.sym_stride(-1) == 1 && key.sym_stride(-1) == 1 &&
      value.sym_stride(-1) == 1;
  const bool one_size = size == key.sym_size(-1) && size == value.sym_size(-1);
  const auto& context = at::globalContext();
  if (context.userEnabledFlashSDP() && has_flash && low && dense && one_size && size <= 256 && !mask.has_value()) {
    return static_cast<int64_t>(SDPBackend::flash_attention);
  }
  const int64_t aligned = low ? 8 : 4;
  if (context.userEnabledMemEfficientSDP() && (low || dtype == at::kFloat) && dense && !shares_keys &&
      size % aligned == 0 && value.sym_size(-1) % aligned == 0) {
    return static_cast<int64_t>(SDPBackend::efficient_attention);
  }
  return static_cast<int64_t>(SDPBackend::math);
}

TracingGuard guard;
TracingHooks hooks;
const c10::impl::DeviceGuardImplInterface* guard_before = nullptr;
void* hooks_before = nullptr;

// Torch creates its hooks object once and never replaces it. Neither its class nor ours has data members, so
// exchanging the virtual function table exchanges the object (Itanium C++ ABI: its address is the first word).
void*& functions_of(const at::CUDAHooksInterface& object) {
  return *reinterpret_cast<void**>(const_cast<at::CUDAHooksInterface*>(&object));
}

std::atomic<const c10::impl::DeviceGuardImplInterface*>& registered_guard() {
  return c10::impl::device_guard_impl_registry[static_cast<size_t>(DeviceType::CUDA)];
}

// Reaches protected members: autograd's engine counts devices and starts a thread for each in the first backward of a
// process, and never again.
struct Engine : torch::autograd::Engine {
  static void count_devices(torch::autograd::Engine& engine) {
    engine.initialize_device_threads_pool();
    if ((engine.*(&Engine::device_ready_queues_)).empty()) {
      (engine.*(&Engine::start_device_threads))();
    }
  }
};

}  // namespace

namespace at::native {
REGISTER_CUDA_DISPATCH(_fused_sdp_choice_stub, &choose_attention)
}

extern "C" void autockpt_begin(int flash) {
  has_flash = flash != 0;
  guard_before = registered_guard().exchange(&guard);
  hooks_before = functions_of(at::detail::getCUDAHooks());
  functions_of(at::detail::getCUDAHooks()) = functions_of(hooks);
}

extern "C" void autockpt_end() {
  registered_guard().store(guard_before);
  functions_of(at::detail::getCUDAHooks()) = hooks_before;
}

// Before a backward on the fake device, in a process that may have run one before the device was there.
extern "C" void autockpt_before_backward() {
  if (registered_guard().load() == &guard) {
    Engine::count_devices(torch::autograd::Engine::get_default_engine());
  }
}
