#include "tools/adapters/systems.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace kvo::tools {
namespace {

constexpr std::array kSystems{
    System{"vllm", "vllm", "KVCacheManager"},
    System{"sglang", "sglang", "RadixCache and its allocators"},
    System{"sglang-unified", "sglang.unified", "UnifiedRadixCache and its allocators"},
    System{"sglang-unified-rust", "sglang.unified_rust", "UnifiedRadixCache over its tree in Rust"},
    System{"sglang-window", "sglang.window", "PureSWARadixCache and its allocator"},
    System{"transformers", "transformers", "its Cache classes"},
    System{"mlx-lm", "mlx_lm", "its cache classes"},
};

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// `folder` is TREE/build/PRESET/tools, or no folder of a tree: then empty.
std::string library_of_tree(const std::filesystem::path& folder) {
  std::error_code failed;
  const std::filesystem::path library =
      folder.parent_path().parent_path().parent_path() / "tools/adapters/python/src";
  return std::filesystem::exists(library / "kvoracle/systems", failed) ? library.string() : "";
}

}  // namespace

std::span<const System> systems() {
  return kSystems;
}

const System* find_system(std::string_view name) {
  const auto* found = std::ranges::find(kSystems, name, &System::name);
  return found == kSystems.end() ? nullptr : found;
}

std::string path_of_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

std::string python_of_systems() {
  const std::filesystem::path folder = std::filesystem::path(path_of_program()).parent_path();
  std::error_code failed;
  if (std::filesystem::exists(folder / "python3", failed)) return quoted(folder / "python3");
  const std::string library = library_of_tree(folder);
  if (library.empty()) return "python3";
  return fmt::format("PYTHONPATH={}${{PYTHONPATH:+:$PYTHONPATH}} python3", quoted(library));
}

std::string command_of(const System& system) {
  return fmt::format("{} -m kvoracle.systems.{}", python_of_systems(), system.module);
}

std::string why_absent(const std::string& error) {
  if (error.find("No module named 'kvoracle'") != std::string::npos)
    return "python3 has no library kvoracle: install the wheel, or set PYTHONPATH "
           "(docs/systems.md)";
  constexpr std::string_view kGreeting = "no greeting: ";
  const std::size_t at = error.find(kGreeting);
  std::string why = at == std::string::npos ? error : error.substr(at + kGreeting.size());
  // What it says is more than its status.
  const std::size_t said = why.find(": ");
  if (said != std::string::npos && why.starts_with("exited with status ")) why.erase(0, said + 2);
  // Of a traceback, what went wrong.
  if (const std::size_t last = why.rfind("; "); last != std::string::npos) why.erase(0, last + 2);
  return why;
}

}  // namespace kvo::tools
