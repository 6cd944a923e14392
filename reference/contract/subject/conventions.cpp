#include "reference/contract/subject/conventions.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

std::string because_of(const Error& error) {
  std::string text;
  bool in_number = false;
  for (const char c : error.detail) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) text += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
    if (digit && !in_number) {
      if (text.ends_with(" -") || text == "-") text.pop_back();  // its sign
      text += '#';
    }
    in_number = digit;
  }
  return text;
}

bool may_answer(const Conventions& conventions, std::string_view operation, const Error& wanted,
                const std::optional<std::string>& given) {
  if (conventions.refusals.empty()) return false;
  const std::string code = wanted.code_text();
  const std::string because = because_of(wanted);
  return std::ranges::any_of(conventions.refusals, [&](const RefusalConvention& row) {
    return row.operation == operation && row.wanted == code && row.given == given &&
           (row.because.empty() || row.because == because);
  });
}

bool is_outside(const Conventions& conventions, const CacheKind& kind, const Op& op) {
  if (std::ranges::find(conventions.without, op.kind().name) != conventions.without.end())
    return true;
  return std::ranges::any_of(conventions.named, [&](const std::string& name) {
    const ConventionInfo* info = find_convention(kind, name);
    return info != nullptr && info->outside != nullptr && info->outside(op);
  });
}

bool chooses(const Conventions& conventions, const CacheKind& kind) {
  return std::ranges::any_of(conventions.named, [&](const std::string& name) {
    const ConventionInfo* info = find_convention(kind, name);
    return info != nullptr && info->chooses;
  });
}

namespace {

// Members that report addresses are not compared.
class Copies final : public Relation {
 public:
  [[nodiscard]] Observation settled(const Op& /*op*/, const Observation& want,
                                    Observation got) override {
    if (want.error || got.error || !want.returns || !got.returns) return got;
    const Type& type = got.returns.type();
    if (&want.returns.type() != &type) return got;
    for (const Field& field : type.fields) {
      if (field.domain == nullptr || !field.domain->depends_on_addresses) continue;
      const std::shared_ptr<void> promised = type.copy_of(got.returns.get());
      field.type->assign(field.of(promised.get()), field.of(want.returns.get()));
      got.returns = Record(type, promised);
    }
    return got;
  }
};

std::unique_ptr<Relation> copies(const CacheKind& /*kind*/, const Setup& /*setup*/) {
  return std::make_unique<Copies>();
}

bool is_beyond_domains(const Op& op) {
  return argument_error(op).has_value();
}

}  // namespace

std::span<const ConventionInfo> general_conventions() {
  static constexpr std::array<ConventionInfo, 4> kAll{
      {{.name = "copies",
        .rules = "",
        .sentence = "returns copies, so that addresses change",
        .relation = copies},
       {.name = kEndsAfterRefusal,
        .rules = "",
        .sentence = "promises nothing after a call that the rules refuse: the case ends there"},
       {.name = kNoPromiseAfterFailedAllocation,
        .rules = "",
        .sentence = "promises nothing after a failed allocation: the law about them leaves it out"},
       {.name = "arguments_in_bounds",
        .rules = "",
        .sentence = "is only asked with arguments inside the bounds that `list` shows",
        .outside = is_beyond_domains}}};
  return kAll;
}

std::vector<const ConventionInfo*> named_conventions(const CacheKind& kind) {
  std::vector<const ConventionInfo*> all;
  for (const std::span<const ConventionInfo> some : {kind.conventions, general_conventions()})
    for (const ConventionInfo& one : some)
      if (std::ranges::find(all, one.name, &ConventionInfo::name) == all.end()) all.push_back(&one);
  return all;
}

const ConventionInfo* find_convention(const CacheKind& kind, std::string_view name) {
  for (const std::span<const ConventionInfo> some : {kind.conventions, general_conventions()})
    for (const ConventionInfo& one : some)
      if (one.name == name) return &one;
  return nullptr;
}

std::vector<std::string> config_values(const CacheKind& kind, const Setup& setup) {
  const Record config = setup.config ? setup.config : Record(*kind.config, kind.config->made());
  const boost::json::object changed = write_changed(*kind.config, config.get());
  std::vector<std::string> values;
  for (const Field& field : kind.config->fields) {
    const auto* value = changed.if_contains(field.name);
    values.push_back(value != nullptr ? boost::json::serialize(*value) : "default");
  }
  return values;
}

namespace {

// What a member counts for the cache; nothing where `value` is not counted.
std::optional<std::int64_t> counted(const std::string& value, std::int64_t plus) {
  const auto counts = boost::json::try_value_to<std::int64_t>(boost::json::parse(value));
  if (!counts || *counts <= 0) return std::nullopt;
  return *counts + plus;
}

}  // namespace

Setup setup_of_cache(const Conventions& conventions, const CacheKind& kind, Setup setup) {
  for (const ConfigConvention& row : conventions.configs) {
    if (row.plus == 0 || !setup.config) continue;
    boost::json::object members = write_changed(*kind.config, setup.config.get());
    const auto* value = members.if_contains(row.member);
    if (value == nullptr) continue;
    const auto counts = counted(boost::json::serialize(*value), row.plus);
    if (!counts) continue;
    members[row.member] = *counts;
    JsonFault fault;
    if (Record changed = read_record(members, *kind.config, fault)) setup.config = changed;
  }
  return setup;
}

bool may_refuse(const Conventions& conventions, const CacheKind& kind, const Setup& setup) {
  if (conventions.configs.empty()) return false;
  const std::vector<std::string> values = config_values(kind, setup);
  const std::vector<Field>& fields = kind.config->fields;
  return std::ranges::any_of(conventions.configs, [&](const ConfigConvention& row) {
    const auto field = std::ranges::find(fields, row.member, &Field::name);
    if (field == fields.end()) return false;
    const std::string& value = values[static_cast<std::size_t>(field - fields.begin())];
    if (row.plus == 0) return std::ranges::find(row.only, value) == row.only.end();
    return value != "default" && counted(value, row.plus).value_or(1) < 1;
  });
}

bool Conventions::has(std::string_view name) const {
  return std::ranges::find(named, name) != named.end();
}

Settlement::Settlement(const Conventions& conventions, const CacheKind& kind, const Setup& setup)
    : conventions_(&conventions), kind_(&kind) {
  for (const std::string& name : conventions.named)
    if (const ConventionInfo* info = find_convention(kind, name); info && info->relation)
      relations_.push_back({info, info->relation(kind, setup)});
}

Observation Settlement::settled(const Op& op, const Observation& want, Observation got) {
  for (const Named& one : relations_) {
    const bool differs = observation_difference(want, got).has_value();
    got = one.relation->settled(op, want, std::move(got));
    if (differs && !observation_difference(want, got) &&
        std::ranges::find(used_, one.info->name) == used_.end())
      used_.push_back(one.info->name);
  }
  if (want.error && got.error &&
      may_answer(*conventions_, op.kind().name, *want.error, got.error->code_text()))
    return want;
  return got;
}

bool Settlement::ends_by_relation(const Op& op, const Observation& want, const Observation& got) {
  for (const Named& one : relations_) {
    if (!one.relation->ends(op, want, got)) continue;
    if (std::ranges::find(used_, one.info->name) == used_.end()) used_.push_back(one.info->name);
    return true;
  }
  return false;
}

const char* Settlement::ends(const Op& op, const Observation& want, const Observation& got) {
  if (!any()) return nullptr;
  if (ends_by_relation(op, want, got))
    return "its conventions promise nothing after this operation";
  if (is_outside(*conventions_, *kind_, op)) return "its conventions leave this operation out";
  if (!want.error) return nullptr;
  if (!got.error && may_answer(*conventions_, op.kind().name, *want.error, std::nullopt))
    return "carried out what the rules refuse, as its conventions allow";
  if (got.error && conventions_->has(kEndsAfterRefusal) && !observation_difference(want, got))
    return "by its conventions it promises nothing after a refused call";
  return nullptr;
}

}  // namespace kvo
