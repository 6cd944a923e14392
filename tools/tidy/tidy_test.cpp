// tools/tidy/tidy_test.cpp: the rules applied to this very tree.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

using testing::IsEmpty;

const Tree& this_tree() {
  static const Tree kTree = read_tree(KVO_SOURCE_ROOT);
  return kTree;
}

Complaints left(Complaints (*rule)(const Tree&)) {
  return without(not_yet(), rule(this_tree()));
}

TEST(Tidy, TheTreeIsFound) {
  const auto is_this_file = [](const Source& source) {
    return source.path == "tools/tidy/tidy_test.cpp";
  };
  EXPECT_TRUE(std::any_of(this_tree().sources.begin(), this_tree().sources.end(), is_this_file));
}

TEST(Tidy, IncludesFollowTheArrows) {
  EXPECT_THAT(left(includes_against_the_arrows), IsEmpty());
}

TEST(Tidy, IncludesAreByPathFromTheRoot) {
  EXPECT_THAT(left(includes_not_from_the_root), IsEmpty());
}

TEST(Tidy, CacheHeadersBringNoJson) {
  EXPECT_THAT(left(json_in_cache_headers), IsEmpty());
}

TEST(Tidy, FunctionsHaveAtMost70Lines) {
  EXPECT_THAT(left(long_functions), IsEmpty());
}

TEST(Tidy, VirtualsThatMayFailTellTheirErrors) {
  EXPECT_THAT(left(errors_not_told), IsEmpty());
}

TEST(Tidy, LinesHaveAtMost100Columns) {
  EXPECT_THAT(left(long_lines), IsEmpty());
}

TEST(Tidy, FilesHaveAtMost500Lines) {
  EXPECT_THAT(left(long_files), IsEmpty());
}

TEST(Tidy, EverySourceIsInATarget) {
  EXPECT_THAT(left(sources_in_no_target), IsEmpty());
}

TEST(Tidy, NoBannedWordIsUsed) {
  EXPECT_THAT(left(banned_words), IsEmpty());
}

// So that the list becomes shorter with what it excuses.
TEST(Tidy, NothingIsExcusedThatIsRight) {
  Complaints all;
  for (const auto rule : {includes_against_the_arrows, includes_not_from_the_root,
                          json_in_cache_headers, long_functions, errors_not_told, long_lines,
                          long_files, sources_in_no_target, banned_words}) {
    const Complaints more = rule(this_tree());
    all.insert(all.end(), more.begin(), more.end());
  }
  EXPECT_THAT(unused(not_yet(), all), IsEmpty()) << "take these rows out of kNotYet";
}

}  // namespace
}  // namespace kvo::tidy
