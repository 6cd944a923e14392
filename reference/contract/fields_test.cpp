#include "reference/contract/fields.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/subjects.hpp"

namespace kvo {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Fields, EveryFieldOfEveryOperationHasAMeaning) {
  std::set<std::string> missing;
  for (const Subject& subject : reference::subjects())
    for (const OpKind* op : subject.kind->operations)
      for (const auto* fields : {&op->arguments, &op->returns})
        for (const FieldInfo& field : *fields)
          if (field_unit(field.name).empty())
            missing.insert(subject.kind->name() + " " + std::string(op->name) + " " +
                           std::string(field.name));
  EXPECT_THAT(missing, IsEmpty()) << "add them to reference/contract/fields.cpp";
}

TEST(Fields, AnUnknownNameHasNone) {
  EXPECT_THAT(field_unit("no_such_field"), IsEmpty());
  EXPECT_THAT(field_unit(""), IsEmpty());
  EXPECT_THAT(field_unit("layer"), HasSubstr("from 0"));
  EXPECT_THAT(field_unit("workers"), HasSubstr("threads"));
  EXPECT_NE(field_unit("k", "integer"), field_unit("k", "tensor"));
}

}  // namespace
}  // namespace kvo
