// The examples that AWS publishes with the definition of Signature Version 4 for S3.
#include "reader/source/sigv4.h"

#include <gtest/gtest.h>

namespace headrace::reader {
namespace {

const Credentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};

std::string SignatureOf(const std::string& path,
                        std::vector<std::pair<std::string, std::string>> query,
                        std::vector<std::pair<std::string, std::string>> more) {
  SigV4Request request;
  request.path = path;
  request.query = std::move(query);
  request.payload_sha256 = kEmptySha256;
  request.headers = {{"x-amz-date", "20130524T000000Z"},
                     {"host", "examplebucket.s3.amazonaws.com"},
                     {"x-amz-content-sha256", kEmptySha256}};
  request.headers.insert(request.headers.end(), more.begin(), more.end());
  const std::string authorization = SigV4Authorization(request, kExample, "us-east-1", "s3");
  return authorization.substr(authorization.find("Signature=") + 10);
}

TEST(SigV4, TheGetOfARangeIsSignedAsPublished) {
  SigV4Request request;
  request.path = "/test.txt";
  request.payload_sha256 = kEmptySha256;
  request.headers = {{"host", "examplebucket.s3.amazonaws.com"},
                     {"range", "bytes=0-9"},
                     {"x-amz-content-sha256", kEmptySha256},
                     {"x-amz-date", "20130524T000000Z"}};
  EXPECT_EQ(SigV4Authorization(request, kExample, "us-east-1", "s3"),
            "AWS4-HMAC-SHA256 "
            "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, QueriesAreSignedAsPublished) {
  EXPECT_EQ(SignatureOf("/", {{"lifecycle", ""}}, {}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(SignatureOf("/", {{"prefix", "J"}, {"max-keys", "2"}}, {}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, EncodingKeepsOnlyUnreservedBytes) {
  EXPECT_EQ(UriEncode("a b/c~d-e_f.g+\xc3\xa9", true), "a%20b/c~d-e_f.g%2B%C3%A9");
  EXPECT_EQ(UriEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(CanonicalQuery({{"b", "2"}, {"a", "x/y"}}), "a=x%2Fy&b=2");
}

}  // namespace
}  // namespace headrace::reader
