#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/view/base64.hpp"
#include "sim/view/page.hpp"

namespace stagecraft {
namespace {

// The examples of RFC 4648, section 10.
TEST(Base64, WritesTheExamplesOfItsStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xff\xff"), "////");
}

TEST(HtmlEscaped, LeavesNothingThatMarksUp) {
  EXPECT_EQ(html_escaped("<b a=\"1\" c='2'>&</b>"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;&lt;/b&gt;");
}

// What stands in a script element is read as text up to "</script", and "<!--" changes how: neither is left.
TEST(JsonInScript, IsTheSameDocumentAndEndsNoScript) {
  const nlohmann::json document = {
      {"name", "</script><!-- <script>alert(1)</script> & \xe2\x80\xa8 \xe2\x80\xa9 \xc3\xa9"}};
  const std::string text = json_in_script(document.dump());
  EXPECT_THAT(text, testing::Not(testing::AnyOf(testing::HasSubstr("<"), testing::HasSubstr(">"),
                                                testing::HasSubstr("&"), testing::HasSubstr("\xe2\x80\xa8"),
                                                testing::HasSubstr("\xe2\x80\xa9"))));
  EXPECT_EQ(nlohmann::json::parse(text), document);
}

TEST(HtmlPage, HasOneElementOfDataAndOneProgram) {
  const std::string page =
      html_page(PageContent{.title = "</title><script>", .json = R"({"kind":"</script>"})"});
  std::size_t scripts = 0;
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 2u);
  EXPECT_THAT(page, testing::HasSubstr("<title>&lt;/title&gt;&lt;script&gt; · Stagecraft</title>"));
  EXPECT_THAT(page, testing::HasSubstr("default-src 'none'"));
}

}  // namespace
}  // namespace stagecraft
