#include "tools/reports/result_file.hpp"

#include <fstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "tools/commands/program_name.hpp"
#include "tools/reports/json_file.hpp"

namespace kvo::tools {
namespace {

boost::json::array& command_words() {
  static boost::json::array words;
  return words;
}

// Its value may be a key, which is not for results.
constexpr std::string_view kSecretOption = "--header";

// As Linux names it; null where it has no name for it.
boost::json::value processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      return boost::json::string(line.substr(colon + 2));
  }
  return nullptr;
}

// What a result may depend on beside the command: version, compiler, machine. The same in two runs
// of one program on one machine.
boost::json::object environment_json() {
  utsname system{};
  (void)uname(&system);
  return {{"kvoracle", kVersion},
          {"compiler", KVO_COMPILER},
          {"build_type", KVO_BUILD_TYPE},
          {"system", fmt::format("{} {}", system.sysname, system.release)},
          {"machine", system.machine},
          {"processor", processor_name()},
          {"cores", std::thread::hardware_concurrency()}};
}

}  // namespace

void set_command_words(int argc, const char* const* argv) {
  command_words().clear();
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view before = i > 1 ? argv[i - 1] : "";
    const bool is_header = before == kSecretOption || word.starts_with(kSecretOption);
    const std::size_t colon = is_header ? word.find(':') : word.npos;
    command_words().emplace_back(colon == word.npos ? std::string(word)
                                                    : std::string(word.substr(0, colon)) + ": ...");
  }
}

void write_result(const std::string& path, std::string_view result,
                  const boost::json::object& members) {
  boost::json::array command{program_name()};
  for (const boost::json::value& word : command_words()) command.push_back(word);
  boost::json::object all{{"format_version", kFormatVersion},
                          {"result", result},
                          {"command", std::move(command)},
                          {"environment", environment_json()}};
  all.insert(members.begin(), members.end());
  write_json_file(path, all);
}

}  // namespace kvo::tools
