// tools/adapters/project.hpp: the beginning of an adapter, as files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "traces/io/embedded_file.hpp"

namespace kvo::tools {

struct ProjectFile {
  std::string path;  ///< below the project's directory
  std::string text;
};

/// The languages that there are beginnings in: "python", "go", "rust", "c", "cpp".
[[nodiscard]] std::span<const std::string_view> project_languages();

/// A project with a cache of the kind: its operations with their documentation, a small cache or an
/// empty one, a test, a step of CI, and the runtime library. Requires  one of project_languages().
[[nodiscard]] std::vector<ProjectFile> adapter_project(std::string_view language,
                                                       const CacheKind& kind);

/// A name in the way of Go: WithCapacity for with_capacity.
[[nodiscard]] std::string member_name(std::string_view name);

/// The name of an argument in Python: that of a keyword ends with '_'.
[[nodiscard]] std::string python_name(std::string_view name);

/// A name in Rust: that of a keyword begins with "r#".
[[nodiscard]] std::string rust_name(std::string_view name);

/// The text of one of project_parts(), which must be there.
[[nodiscard]] std::string_view project_part(std::string_view path);

/// The runtime libraries, the small caches, and templates of programs and styles.
[[nodiscard]] std::span<const traces::EmbeddedFile> project_parts();

}  // namespace kvo::tools
