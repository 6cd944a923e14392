// Rows that a failed operation restores.
#include "reference/prefix/cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/prefix/journal.hpp"

namespace kvo::prefix {
namespace {

using testing::ElementsAre;

TEST(Journaled, IsAsBeforeUnlessCommitted) {
  Journaled<Ids> rows;
  rows.add({1});
  rows.commit();
  rows.change(0).push_back(2);
  rows.change(0).push_back(3);
  rows.add({4});
  rows.roll_back();
  EXPECT_EQ(rows.size(), 1);
  EXPECT_THAT(rows[0], ElementsAre(1));
  rows.change(0).push_back(2);
  rows.commit();
  rows.roll_back();
  EXPECT_THAT(rows[0], ElementsAre(1, 2));
}

}  // namespace
}  // namespace kvo::prefix
