#include "reference/contract/subject/inner.hpp"

#include <algorithm>

namespace kvo {

Result<Inner> Inner::open(const Subject& subject, const Setup& setup, const ProbeSlot& probe,
                          Record config) {
  Setup own{.profile = setup.profile, .config = std::move(config), .schedule = setup.schedule};
  for (const std::string& name : setup.quirks)
    if (std::ranges::find(subject.kind->quirks, name, &QuirkInfo::name) !=
        subject.kind->quirks.end())
      own.quirks.push_back(name);
  if (subject.refuses && subject.refuses(own))
    return fail(Code::kNotSupported, subject.name() + " refuses the config of this case");
  auto session = subject.open(own);
  if (!session) return session.error();
  return Inner(std::move(*session), probe);
}

}  // namespace kvo
