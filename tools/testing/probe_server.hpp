// tools/testing/probe_server.hpp: an engine that serves the probe, for tests.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "reference/subjects.hpp"
#include "tools/probe/serve/server.hpp"

namespace kvo::tools {

/// An engine over `prefix.blocks@reference`, with one of server_faults().
[[nodiscard]] inline std::shared_ptr<ProbeServer> server_with_fault(
    std::string_view fault, const probe::Shape& shape = {}) {
  static const std::vector<Subject> kCaches = prefix::references();
  return std::make_shared<ProbeServer>(
      ServerOptions{.cache = kCaches.data(),
                    .fault = &*std::ranges::find(server_faults(), fault, &ServerFault::name),
                    .shape = shape});
}

}  // namespace kvo::tools
