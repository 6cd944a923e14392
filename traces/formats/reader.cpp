#include "traces/formats/reader.hpp"

#include <utility>

namespace kvo::traces {

TraceResult<std::optional<Request>> Reader::next() {
  if (failure_) return *failure_;
  auto request = read_next();
  if (!request) failure_ = request.error();
  return request;
}

TraceResult<std::vector<Request>> read_all(Reader& reader) {
  std::vector<Request> requests;
  for (;;) {
    auto request = reader.next();
    if (!request) return request.error();
    if (!*request) return requests;
    requests.push_back(std::move(**request));
  }
}

}  // namespace kvo::traces
