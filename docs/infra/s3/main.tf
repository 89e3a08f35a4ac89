# A bucket for locks in Amazon S3, and the rights of those who take them.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "bucket" {
  description = "The name of the bucket, which no other bucket of AWS may have."
  type        = string
}

variable "prefix" {
  description = "What the names of the objects begin with, as in the store url."
  type        = string
  default     = "leasehold"
}

# Without versioning, object lock and lifecycle rules: an object that is gone has forgotten its lock and its token, and old
# versions would only be paid for.
resource "aws_s3_bucket" "locks" {
  bucket = var.bucket
}

resource "aws_s3_bucket_public_access_block" "locks" {
  bucket                  = aws_s3_bucket.locks.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

# Attach it to the roles of the workers.
resource "aws_iam_policy" "locks" {
  name = "${var.bucket}-locks"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject"]
        Resource = "${aws_s3_bucket.locks.arn}/${var.prefix}/*"
      },
      {
        # Without it S3 does not tell that an object is missing.
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = aws_s3_bucket.locks.arn
      },
    ]
  })
}

output "store" {
  value = "s3://${aws_s3_bucket.locks.bucket}/${var.prefix}?region=${aws_s3_bucket.locks.region}"
}
