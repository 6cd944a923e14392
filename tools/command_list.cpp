// tools/command_list.cpp: `kvoracle list`: what there is to check, and with what.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda/device/open.hpp"
#include "properties/campaign/contracts.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/exit_status.hpp"
#include "tools/program_name.hpp"
#include "tools/result_file.hpp"
#include "tools/usage.hpp"
#include "traces/formats/formats.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

const Table::Column kText{.title = "", .wraps = true};

struct Line {
  std::string name;
  std::string doc;
};
BOOST_DESCRIBE_STRUCT(Line, (), (name, doc))

/// One heading of the list with what stands under it.
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
           {"cuda", card ? *card : "no card: " + card.error().detail}}};
}

/// Everything there is: the one place where all of it comes together.
std::vector<Section> sections(const Contracts& contracts) {
  Section caches{"caches", {}};
  for (const CacheKind* kind : contracts.kinds())
    caches.lines.push_back(
        {kind->name(), fmt::format("{} [{} operations]", kind->doc, kind->operations.size())});
  Section subjects{"subjects", {}};
  for (const Subject* subject : contracts.subjects())
    subjects.lines.push_back({subject->name(), subject->doc});
  Section seeded{"mutants", {}};
  for (const Mutant& mutant : contracts.mutants())
    seeded.lines.push_back({mutant.subject.name(), mutant.fault});
  Section known_laws{"laws", {}};
  for (const Law* law : contracts.laws())
    known_laws.lines.push_back({std::string(law->name()), std::string(law->doc())});
  Section formats{"trace formats", {}};
  for (const traces::Format& format : traces::formats())
    formats.lines.push_back({std::string(format.name), std::string(format.description)});
  return {std::move(caches),     std::move(subjects), std::move(seeded),
          std::move(known_laws), std::move(formats),  devices_here()};
}

std::string overview_text(const std::vector<Section>& all, const Paint& paint) {
  std::string text;
  for (const Section& section : all) {
    if (section.lines.empty()) continue;
    Table table({{""}, kText});
    for (const Line& line : section.lines) table.row({line.name, line.doc});
    text += (text.empty() ? "" : "\n") + paint(Colour::kBold, section.title) + "\n" +
            table.text(2, output_columns());
  }
  return text +
         fmt::format("\n{} list --contract NAME shows the operations of a contract or cache.\n",
                     program_name());
}

json::object overview_json(const std::vector<Section>& all) {
  json::object out;
  for (const Section& section : all) {
    std::string key(section.title);
    std::replace(key.begin(), key.end(), ' ', '_');
    out[key] = write_json(section.lines);
  }
  return out;
}

/// "update(cache?, layer, k, v)"
std::string signature(const OpKind& op) {
  std::vector<std::string> names;
  for (const Field& field : op.arguments->fields)
    names.push_back(std::string(field.name) + (field.type->is_optional() ? "?" : ""));
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

json::array fields_json(const Type& record) {
  json::array out;
  for (const Field& field : record.fields) {
    json::object one{{"name", field.name},
                     {"type", field.type->word()},
                     {"optional", field.type->is_optional()},
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
  return {{"name", kind.name()},
          {"contract", kind.contract},
          {"cache", kind.cache},
          {"doc", kind.doc},
          {"variants", json::value_from(variants_of(contracts, kind))},
          {"operations", std::move(operations)},
          {"config", fields_json(*kind.config)},
          {"quirks", std::move(quirks)}};
}

/// The cache of that name, or every cache of the contract of that name.
std::vector<const CacheKind*> kinds_named(const Contracts& contracts, const std::string& name) {
  std::vector<const CacheKind*> found;
  std::vector<std::string> known;
  for (const CacheKind* kind : contracts.kinds()) {
    if (kind->contract == name || kind->name() == name) found.push_back(kind);
    if (known.empty() || known.back() != kind->contract) known.emplace_back(kind->contract);
  }
  if (found.empty()) throw unknown_word("contract", name, known);
  return found;
}

struct ListOptions {
  std::string contract;
  std::string json;
};

int run_list(const Contracts& contracts, const ListOptions& options) {
  json::object out;
  std::string text;
  const Paint paint(stdout);
  if (options.contract.empty()) {
    const std::vector<Section> all = sections(contracts);
    text = overview_text(all, paint);
    out = overview_json(all);
  } else {
    json::array& caches = out["caches"].emplace_array();
    const std::vector<const CacheKind*> kinds = kinds_named(contracts, options.contract);
    for (const CacheKind* kind : kinds) {
      text += (text.empty() ? "" : "\n") + kind_text(contracts, *kind, paint) +
              quirks_text(kind->quirks, paint);
      caches.push_back(kind_json(contracts, *kind));
    }
  }
  if (options.json != kStandardOutput) print_out(text);
  if (!options.json.empty())
    write_result(options.json, options.contract.empty() ? "list" : "list_contract", out);
  return kExitConforms;
}

}  // namespace

Run declare_list(CLI::App& app, const Contracts& contracts) {
  const auto options = std::make_shared<ListOptions>();
  app.add_option("-c,--contract", options->contract,
                 "show the operations of this contract (provider) or cache (provider.paged)")
      ->type_name("CONTRACT");
  app.add_option("--json", options->json, "write the list as JSON; - for standard output")
      ->type_name("FILE");
  return [&contracts, options] { return run_list(contracts, *options); };
}

}  // namespace kvo::tools
