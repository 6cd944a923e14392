// reference/subjects.hpp: the references of each contract, one subject a kind, in the order of
// kinds.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::layered {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::block_pool {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::provider {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::positional {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::snapshot {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::sampling {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::generation {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::views {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::prefix {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::cells {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::dynamic {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::mlx_lm {
[[nodiscard]] std::vector<Subject> references();
}
namespace kvo::events {
[[nodiscard]] std::vector<Subject> references();
}
