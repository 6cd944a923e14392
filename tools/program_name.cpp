#include "tools/program_name.hpp"

#include <filesystem>

namespace kvo::tools {
namespace {

std::string& name() {
  static std::string name = "kvoracle";
  return name;
}

}  // namespace

const std::string& program_name() {
  return name();
}

void set_program_name(const char* path) {
  const std::string last = std::filesystem::path(path).filename().string();
  if (!last.empty()) name() = last;
}

}  // namespace kvo::tools
