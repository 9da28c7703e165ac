"""Names by which a client configuration says that it logs in to Amazon MSK with IAM."""

MECHANISM = "AWS_MSK_IAM"
"""The mechanism of Java's `aws-msk-iam-auth`; librdkafka has OAUTHBEARER with a token instead."""

PROFILE = "aws.msk.iam.profile"
ROLE_ARN = "aws.msk.iam.role.arn"
ROLE_SESSION = "aws.msk.iam.role.session.name"
IDENTITY = (PROFILE, ROLE_ARN, ROLE_SESSION)
"""Settings beside the mechanism; librdkafka does not know them."""
