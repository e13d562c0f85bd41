#include "reader/source/s3.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace headrace::reader {
namespace {

TEST(S3, NamesBecomePathsOfTheEndpoint) {
  unsetenv("AWS_ACCESS_KEY_ID");
  RemoteOptions options;
  options.region = "eu-west-1";
  EXPECT_EQ(S3Place("s3://bucket/a b/c+d.dwrf", options, {}).url,
            "https://s3.eu-west-1.amazonaws.com/bucket/a%20b/c%2Bd.dwrf");
  options.endpoint = "http://127.0.0.1:9000/";
  EXPECT_EQ(S3Place("s3://bucket/x", options, {}).url, "http://127.0.0.1:9000/bucket/x");
  EXPECT_EQ(S3Place("s3://bucket", options, {}).url, "http://127.0.0.1:9000/bucket");
  EXPECT_THROW(S3Place("s3:///x", options, {}), Error);
  EXPECT_EQ(S3Place("s3://bucket/x", options, {}).signer, nullptr) << "nothing to sign with";
}

TEST(S3, RequestsAreSignedForTheHostThatIsAsked) {
  setenv("AWS_ACCESS_KEY_ID", "ID", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "the secret", 1);
  setenv("AWS_SESSION_TOKEN", "the token", 1);
  RemoteOptions options;
  options.endpoint = "http://127.0.0.1:9000";
  const HttpPlace place = S3Place("s3://bucket/x", options, {});
  const HttpHeaders added = place.signer("/bucket/x", {}, {{"range", "bytes=0-9"}});
  std::string names, authorization;
  for (const auto& [name, value] : added) {
    names += name + " ";
    if (name == "authorization") authorization = value;
    EXPECT_EQ(value.find("secret"), std::string::npos);
  }
  EXPECT_EQ(names, "x-amz-content-sha256 x-amz-date x-amz-security-token authorization ");
  EXPECT_NE(authorization.find("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date;"
                               "x-amz-security-token,"),
            std::string::npos)
      << authorization;
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  unsetenv("AWS_SESSION_TOKEN");
}

TEST(S3, PagesOfAListingAreRead) {
  const S3Page page = ParseS3Page(
      "<?xml "
      "version=\"1.0\"?><ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>t/a&amp;b."
      "dwrf</Key><Size>5</Size></Contents><Contents><Key>t/&lt;c&gt;.dwrf</Key></Contents>"
      "<NextContinuationToken>1/x==</NextContinuationToken></ListBucketResult>");
  EXPECT_EQ(page.keys, (std::vector<std::string>{"t/a&b.dwrf", "t/<c>.dwrf"}));
  EXPECT_EQ(page.next, "1/x==");
  EXPECT_EQ(ParseS3Page(
                "<IsTruncated>false</IsTruncated><NextContinuationToken>1</NextContinuationToken>")
                .next,
            "");
  EXPECT_TRUE(ParseS3Page("").keys.empty());
  EXPECT_TRUE(ParseS3Page("<Key>cut sho").keys.empty());
}

}  // namespace
}  // namespace headrace::reader
