#include "tools/commands/conventions.hpp"

#include <deque>

#include <fmt/format.h>

#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "traces/log/cases.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo::tools {

std::map<const CacheKind*, Conventions> conventions_of(const Contracts& contracts,
                                                       const std::vector<std::string>& files) {
  std::map<const CacheKind*, Conventions> all;
  for (const std::string& file : files) {
    const std::string text = must(traces::text_of(must(traces::TextSource::open(file))));
    for (traces::KindConventions& one :
         must(traces::read_conventions(file, text, contracts.kind_finder())))
      if (!all.emplace(one.kind, std::move(one.conventions)).second)
        throw UsageError(
            fmt::format("--conventions: {} has conventions in two files", one.kind->name()));
  }
  return all;
}

namespace {

const Subject* copy_with(const Subject& subject, const Conventions& conventions) {
  static std::deque<Subject> copies;  // do not move
  return &copies.emplace_back(kvo::with_conventions(subject, conventions));
}

UsageError no_subject(const CacheKind& kind) {
  return UsageError(
      fmt::format("--conventions: no subject of {} takes part but its reference", kind.name()));
}

}  // namespace

void declare_conventions(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("--conventions", files,
                 "in what the subjects lawfully differ, as `learn` writes it")
      ->type_name("FILE");
}

void apply_conventions(const Contracts& contracts, const std::vector<std::string>& files,
                       std::vector<Comparison>& comparisons) {
  for (const auto& [kind, conventions] : conventions_of(contracts, files)) {
    bool any = false;
    for (Comparison& comparison : comparisons) {
      if (comparison.kind != kind) continue;
      if (chooses(conventions, *kind) && comparison.subjects.size() > 1)
        throw UsageError(fmt::format(
            "--conventions: {} chooses by itself, so that it is judged alone: name one subject",
            kind->name()));
      for (const Subject*& subject : comparison.subjects) {
        subject = copy_with(*subject, conventions);
        any = true;
      }
    }
    if (!any) throw no_subject(*kind);
  }
}

std::vector<ShownConventions> shown_conventions(const std::vector<Comparison>& comparisons) {
  std::vector<ShownConventions> all;
  for (const Comparison& comparison : comparisons)
    for (const Subject* subject : comparison.subjects)
      if (subject->conventions.any())
        all.push_back({subject->name(), std::string(subject->kind->contract),
                       traces::convention_rows(subject->conventions)});
  return all;
}

void add_conventions(boost::json::object& options, const std::vector<Comparison>& comparisons) {
  boost::json::array texts;
  for (const Comparison& comparison : comparisons)
    for (const Subject* subject : comparison.subjects)
      if (subject->conventions.any())
        texts.emplace_back(
            subject->name() + "\n" +
            traces::conventions_text({.kind = subject->kind, .conventions = subject->conventions}));
  if (!texts.empty()) options["conventions"] = std::move(texts);
}

const Subject& with_conventions(const Contracts& contracts, const std::vector<std::string>& files,
                                const Subject& subject) {
  const Subject* given = &subject;
  for (const auto& [kind, conventions] : conventions_of(contracts, files)) {
    if (kind != subject.kind) throw no_subject(*kind);
    given = copy_with(subject, conventions);
  }
  return *given;
}

}  // namespace kvo::tools
