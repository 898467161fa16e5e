// Names of rows beside their figures.
#include "tools/validation/row_table.hpp"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

// Names of at most eight characters stand beside their figure, which is their place.
RowTable table(const std::vector<std::string>& names) {
  RowTable rows{.longest_name = 8, .aligns = {Align::kRight}, .head = {"time"}};
  for (std::size_t i = 0; i < names.size(); ++i) rows.add(names[i], {std::to_string(i)});
  return rows;
}

TEST(RowTable, LeavesShortNamesAsTheyAre) {
  EXPECT_EQ(table({"a_1", "a_2"}).str(),
            "  row  time\n"
            "  a_1     0\n"
            "  a_2     1\n");
}

TEST(RowTable, SaysInItsHeadWhatLongNamesBeginWith) {
  EXPECT_EQ(table({"set_a_first", "set_a_fix"}).str(),
            "  set_a_…  time\n"
            "  first       0\n"
            "  fix         1\n");
}

TEST(RowTable, GivesANameThatIsStillTooLongALineOfItsOwn) {
  EXPECT_EQ(table({"set_one", "set_twenty_one"}).str(),
            "  set_…  time\n"
            "  one       0\n"
            "  twenty_one\n"
            "            1\n");
}

TEST(RowTable, SaysALongBeginAboveItsHead) {
  EXPECT_EQ(table({"published_a", "published_b"}).str(),
            "  rows of published_…\n"
            "  row  time\n"
            "  a       0\n"
            "  b       1\n");
}

TEST(RowTable, OfNamesThatShareNothingHasThemWhole) {
  EXPECT_EQ(table({"one_of_them", "two_of_them"}).str(),
            "  row  time\n"
            "  one_of_them\n"
            "          0\n"
            "  two_of_them\n"
            "          1\n");
}

TEST(RowTable, SaysWhatItsNamesAreOf) {
  RowTable sets = table({"a", "b"});
  sets.what = "set";
  EXPECT_EQ(sets.str(),
            "  set  time\n"
            "  a       0\n"
            "  b       1\n");
}

TEST(RowTable, WithoutRowsIsItsHead) {
  EXPECT_EQ(table({}).str(), "  row  time\n");
}

}  // namespace
}  // namespace stagecraft
