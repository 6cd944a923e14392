// tools/commands/list.cpp: `kvoracle list`: what there is to check, and with what.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda/device/open.hpp"
#include "properties/campaign/contracts.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "traces/formats/formats.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 7> kListNames{"caches", "subjects",      "mutants", "laws",
                                                     "states", "trace_formats", "devices"};

const Table::Column kText{.title = "", .wraps = true};

struct Line {
  std::string name;
  std::string doc;
  const CacheKind* kind = nullptr;  ///< null: it belongs to no cache
};

/// One list; its title chooses it on the command line.
struct Section {
  std::string_view title;
  std::vector<Line> lines;
};

std::vector<std::string> variants_of(const Contracts& contracts, const CacheKind& kind) {
  std::vector<std::string> variants;
  for (const Subject* subject : contracts.subjects())
    if (subject->kind == &kind) variants.push_back(subject->variant);
  return variants;
}

Section devices_here() {
  const auto card = cuda::card_name();
  return {"devices",
          {{"cuda-sim", "simulated: every order that is allowed, and reports; on any machine"},
           {"cuda", card ? *card : card.error().detail}}};
}

// What a subject is, and what it does not promise.
std::string subject_text(const Subject& subject) {
  return subject.doc +
         (subject.survives_failed_allocation
              ? ""
              : "; failed_allocation_changes_nothing: takes no part") +
         (subject.refuses ? "; takes no part in cases whose config it refuses" : "");
}

// The states that random cases of a kind should reach, in either profile.
std::set<std::string_view> states_of(const Contracts& contracts, const CacheKind& kind) {
  std::set<std::string_view> states;
  if (const Generator* generator = contracts.generator_of(kind))
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
      states.insert(generator->labels(profile).begin(), generator->labels(profile).end());
  return states;
}

std::vector<Line> law_lines(const Contracts& contracts) {
  std::vector<Line> lines;
  for (const Law* law : contracts.laws())
    lines.push_back({std::string(law->name()), std::string(law->doc())});
  return lines;
}

/// Everything there is: the one place where all of it comes together.
std::vector<Section> sections(const Contracts& contracts) {
  Section caches{"caches", {}};
  Section states{"states", {}};
  for (const CacheKind* kind : contracts.kinds()) {
    caches.lines.push_back(
        {kind->name(),
         fmt::format("{} [{}]", kind->doc, count_text(kind->operations.size(), "operation")),
         kind});
    for (const std::string_view state : states_of(contracts, *kind))
      states.lines.push_back({kind->name(), std::string(state), kind});
  }
  Section subjects{"subjects", {}};
  for (const Subject* subject : contracts.subjects())
    subjects.lines.push_back({subject->name(), subject_text(*subject), subject->kind});
  Section seeded{"mutants", {}};
  for (const Mutant& mutant : contracts.mutants())
    seeded.lines.push_back({mutant.subject.name(), mutant.fault, mutant.subject.kind});
  Section formats{"trace_formats", {}};
  for (const traces::Format& format : traces::formats())
    formats.lines.push_back({std::string(format.name), std::string(format.description)});
  return {std::move(caches), std::move(subjects), std::move(seeded), {"laws", law_lines(contracts)},
          std::move(states), std::move(formats),  devices_here()};
}

std::string section_text(const Section& section) {
  Table table({{""}, kText});
  for (const Line& line : section.lines) table.row({line.name, line.doc});
  return table.text(0, output_columns());
}

json::object sections_json(const std::vector<Section>& all) {
  json::object out;
  for (const Section& section : all) {
    json::array& lines = out[section.title].emplace_array();
    for (const Line& line : section.lines)
      lines.push_back({{"name", line.name}, {"doc", line.doc}});
  }
  return out;
}

std::size_t count_of(const Section& section, std::string_view contract) {
  return static_cast<std::size_t>(std::ranges::count_if(section.lines, [&](const Line& line) {
    return line.kind != nullptr && line.kind->contract == contract;
  }));
}

const Section& section_named(const std::vector<Section>& all, std::string_view title) {
  return *std::ranges::find(all, title, &Section::title);
}

// One screen: a row a contract, and what to type next.
std::string overview_text(const Contracts& contracts, const std::vector<Section>& all,
                          const Paint& paint) {
  constexpr std::size_t kScreen = 80;
  std::vector<std::pair<std::string_view, std::vector<std::string>>> rows;
  for (const CacheKind* kind : contracts.kinds()) {
    if (rows.empty() || rows.back().first != kind->contract) rows.push_back({kind->contract, {}});
    rows.back().second.emplace_back(kind->cache);
  }
  Table table({column("contract"),
               numbers("subjects"),
               numbers("laws"),
               numbers("mutants"),
               numbers("states"),
               {.title = "caches", .wraps = true}});
  for (const auto& row : rows) {
    const std::string_view contract = row.first;
    const auto laws = std::ranges::count_if(contracts.laws(), [&](const Law* law) {
      return std::ranges::any_of(contracts.kinds(), [&](const CacheKind* kind) {
        return kind->contract == contract && law->applies_to(*kind);
      });
    });
    table.row({std::string(contract),
               count_text(count_of(section_named(all, "subjects"), contract)),
               count_text(static_cast<std::uint64_t>(laws)),
               count_text(count_of(section_named(all, "mutants"), contract)),
               count_text(count_of(section_named(all, "states"), contract)),
               fmt::format("{}", fmt::join(row.second, ", "))});
  }
  std::string text = table.text(0, std::min(kScreen, output_columns())) + "\n";
  for (const Section& section : all)
    if (section.title == "devices" || section.title == "trace_formats") {
      std::string name(section.title);
      std::ranges::replace(name, '_', ' ');
      Table few({{""}, {""}, kText});
      for (const Line& line : section.lines)
        few.row({&line == section.lines.data() ? name : "", line.name, line.doc});
      text += few.text(0, std::min(kScreen, output_columns()));
    }
  Table next({{""}, kText});
  const std::string list = program_name() + " list ";
  next.row({list + "CONTRACT",
            "a contract, or one of its caches (provider.paged): operations, "
            "config, quirks"});
  next.row({list + "LIST [CONTRACT]", fmt::format("{}", fmt::join(kListNames, ", "))});
  next.row({program_name() + " explain NAME", "what a rule, law, state, column or error means"});
  return text + "\n" + paint(Colour::kBold, "next") + "\n" +
         next.text(2, std::min(kScreen, output_columns()));
}

/// "update(cache?, layer, k, v)"
std::string signature(const OpKind& op) {
  std::vector<std::string> names;
  for (const Field& field : op.arguments->fields)
    names.push_back(std::string(field.name) + (field.may_be_absent() ? "?" : ""));
  return fmt::format("{}({})", op.name, fmt::join(names, ", "));
}

/// A row a field: of the config, or of what an operation takes and returns.
std::string fields_text(const std::vector<std::pair<std::string, const Type*>>& records) {
  Table table({{""}, {""}, {""}, kText});
  for (const auto& [arrow, record] : records)
    for (const Field& field : record->fields) {
      std::string type(field.type->word());
      if (!field.axes.empty()) type += fmt::format(" [{}]", fmt::join(field.axes, ", "));
      if (field.type->is_optional()) type += ", optional";
      if (field.has_default)
        type += ", default " + json_text(*field.type, field.of(record->made().get()));
      if (field.type->is_nullable()) type += ", or null";
      table.row({arrow, std::string(field.name), type, std::string(field.meaning)});
    }
  return table.text(4, output_columns());
}

std::string kind_text(const Contracts& contracts, const CacheKind& kind, const Paint& paint) {
  std::string text = fmt::format("{}  {}\n  variants: {}\n", paint(Colour::kBold, kind.name()),
                                 kind.doc, fmt::join(variants_of(contracts, kind), ", "));
  if (!kind.inner.empty()) text += fmt::format("  inside: {}\n", fmt::join(kind.inner, ", "));
  if (!kind.config->fields.empty())
    text += fmt::format("\n  {}\n{}", paint(Colour::kBold, "config of a case"),
                        fields_text({{"", kind.config}}));
  for (const OpKind* op : kind.operations)
    text += fmt::format("\n  {}\n    {}\n{}", paint(Colour::kBold, signature(*op)), op->doc,
                        fields_text({{"in", op->arguments}, {"out", op->returns}}));
  return text;
}

/// The quirks that concern a cache.
std::string quirks_text(std::span<const QuirkInfo> quirks, const Paint& paint) {
  if (quirks.empty()) return {};
  Table table({{""}, {""}, kText});
  for (const QuirkInfo& quirk : quirks)
    table.row({std::string(quirk.rule), quirk.name(), std::string(quirk.sentence)});
  return fmt::format("\n  {}  what sets the profiles apart\n{}", paint(Colour::kBold, "quirks"),
                     table.text(4, output_columns()));
}

/// The conventions that caches of a kind may have.
std::string conventions_text(const CacheKind& kind, const Paint& paint) {
  Table table({{""}, {""}, kText});
  for (const ConventionInfo* info : named_conventions(kind))
    table.row({std::string(info->name), std::string(info->rules), std::string(info->sentence)});
  return fmt::format("\n  {}  what `learn` may find, beside classes of errors\n{}",
                     paint(Colour::kBold, "conventions"), table.text(4, output_columns()));
}

json::array fields_json(const Type& record) {
  json::array out;
  for (const Field& field : record.fields) {
    json::object one{{"name", field.name},
                     {"type", field.type->word()},
                     {"optional", field.may_be_absent()},
                     {"nullable", field.type->is_nullable()},
                     {"unit", field.meaning}};
    if (!field.axes.empty()) one["axes"] = json::array(field.axes.begin(), field.axes.end());
    out.push_back(std::move(one));
  }
  return out;
}

json::object kind_json(const Contracts& contracts, const CacheKind& kind) {
  json::array operations;
  for (const OpKind* op : kind.operations)
    operations.push_back({{"name", op->name},
                          {"doc", op->doc},
                          {"arguments", fields_json(*op->arguments)},
                          {"returns", fields_json(*op->returns)}});
  json::array quirks;
  for (const QuirkInfo& quirk : kind.quirks)
    quirks.push_back({{"rule", quirk.rule}, {"name", quirk.name()}, {"sentence", quirk.sentence}});
  json::array conventions;
  for (const ConventionInfo* info : named_conventions(kind))
    conventions.push_back(
        {{"name", info->name}, {"rules", info->rules}, {"sentence", info->sentence}});
  return {{"name", kind.name()},
          {"contract", kind.contract},
          {"cache", kind.cache},
          {"doc", kind.doc},
          {"variants", json::value_from(variants_of(contracts, kind))},
          {"operations", std::move(operations)},
          {"config", fields_json(*kind.config)},
          {"quirks", std::move(quirks)},
          {"conventions", std::move(conventions)}};
}

/// The cache of that name, or every cache of the contract of that name. `lists`: other words that
/// are possible there, for a suggestion.
std::vector<const CacheKind*> kinds_named(const Contracts& contracts, const std::string& name,
                                          const std::vector<std::string>& lists) {
  std::vector<const CacheKind*> found;
  std::vector<std::string> known;
  for (const CacheKind* kind : contracts.kinds()) {
    if (kind->contract == name || kind->name() == name) found.push_back(kind);
    if (known.empty() || known.back() != kind->contract) known.emplace_back(kind->contract);
  }
  if (!found.empty()) return found;
  const std::vector<std::string> kinds = kind_words(contracts);
  if (name.find('.') != std::string::npos) throw unknown_word("cache", name, kinds, known);
  std::vector<std::string> others = kinds;
  others.insert(others.end(), lists.begin(), lists.end());
  throw unknown_word("contract", name, known, others);
}

// Lines of other caches are left out; laws are those that apply, with what belongs to no cache.
void keep_of(const std::vector<const CacheKind*>& kinds, const Contracts& contracts,
             std::vector<Section>& all) {
  for (Section& section : all)
    std::erase_if(section.lines, [&](const Line& line) {
      if (section.title == "laws")
        return std::ranges::none_of(kinds, [&](const CacheKind* kind) {
          return contracts.find_law(line.name)->applies_to(*kind);
        });
      return line.kind != nullptr && std::ranges::find(kinds, line.kind) == kinds.end();
    });
}

struct ListOptions {
  std::vector<std::string> words;
  std::string contract;  // --contract
  std::string json;
};

/// What a command line chooses: a list, a contract, both, or neither.
struct Choice {
  std::string list;
  std::string contract;
};

Choice choice_of(const ListOptions& options, const std::vector<std::string>& lists) {
  Choice choice{.list = {}, .contract = options.contract};
  for (const std::string& word : options.words) {
    const bool names_list = std::ranges::find(lists, word) != lists.end();
    std::string& taken = names_list ? choice.list : choice.contract;
    if (!taken.empty())
      throw UsageError(fmt::format("'{}' and '{}': one list, one contract or cache",
                                   printable(taken), printable(word)));
    taken = word;
  }
  return choice;
}

int run_list(const Contracts& contracts, const ListOptions& options) {
  json::object out;
  std::string text;
  const Paint paint(stdout);
  std::vector<Section> all = sections(contracts);
  const std::vector<std::string> lists(kListNames.begin(), kListNames.end());
  const auto [list, contract] = choice_of(options, lists);
  if (list == "mutants") check_has_mutants(contracts);
  std::vector<const CacheKind*> kinds;
  if (!contract.empty()) kinds = kinds_named(contracts, contract, lists);
  if (list.empty() && !contract.empty()) {
    json::array& caches = out["caches"].emplace_array();
    for (const CacheKind* kind : kinds) {
      text += (text.empty() ? "" : "\n") + kind_text(contracts, *kind, paint) +
              quirks_text(kind->quirks, paint) + conventions_text(*kind, paint);
      caches.push_back(kind_json(contracts, *kind));
    }
  } else {
    if (!contract.empty()) keep_of(kinds, contracts, all);
    text = list.empty() ? overview_text(contracts, all, paint)
                        : section_text(section_named(all, list));
    out = sections_json(all);
  }
  if (options.json != kStandardOutput) print_out(text);
  if (!options.json.empty())
    write_result(options.json, list.empty() && !contract.empty() ? "list_contract" : "list", out);
  return kExitConforms;
}

}  // namespace

std::span<const std::string_view> list_names() {
  return kListNames;
}

Run declare_list(CLI::App& app, const Contracts& contracts) {
  const auto options = std::make_shared<ListOptions>();
  app.add_option(
         "what", options->words,
         fmt::format("a contract (provider) or cache (provider.paged): its operations, "
                     "config, quirks; or a list: {}; a list and a contract: its part of the "
                     "list; none: an overview",
                     fmt::join(kListNames, ", ")))
      ->type_name("LIST")
      ->expected(0, 2);
  app.add_option("-c,--contract", options->contract, "the same as the name of a contract")
      ->type_name("CONTRACT");
  app.add_option("--json", options->json, "write the list as JSON; - for standard output")
      ->type_name("FILE");
  return [&contracts, options] { return run_list(contracts, *options); };
}

}  // namespace kvo::tools
