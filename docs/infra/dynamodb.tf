# A table for locks: in one Region, or strongly consistent in several, where replica_region and witness_region are named.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source = "hashicorp/aws"
      # The first with witnesses.
      version = ">= 6.22"
    }
  }
}

variable "table_name" {
  type    = string
  default = "locks"
}

variable "expires_attribute" {
  description = "The attribute of the table's TTL, as in the store url's parameter expires; null for none. Not for several Regions."
  type        = string
  default     = null
}

variable "replica_region" {
  description = "The second Region that can be written to; null for a table in one Region."
  type        = string
  default     = null
}

variable "witness_region" {
  description = "The third Region, which has a vote and no data that can be read. All three must be of one Region set: US, EU or AP."
  type        = string
  default     = null
}

resource "aws_dynamodb_table" "locks" {
  count = var.replica_region == null ? 1 : 0

  name         = var.table_name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "key"

  attribute {
    name = "key"
    type = "S"
  }

  # A table that is gone has forgotten its locks and its tokens.
  deletion_protection_enabled = true

  dynamic "ttl" {
    for_each = var.expires_attribute == null ? [] : [var.expires_attribute]
    content {
      attribute_name = ttl.value
      enabled        = true
    }
  }
}

resource "aws_dynamodb_table" "locks_in_several_regions" {
  count = var.replica_region == null ? 0 : 1

  name         = var.table_name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "key"

  attribute {
    name = "key"
    type = "S"
  }

  deletion_protection_enabled = true

  # Any other mode lets two Regions grant the same lock at the same time.
  replica {
    region_name                 = var.replica_region
    consistency_mode            = "STRONG"
    deletion_protection_enabled = true
  }

  global_table_witness {
    region_name = var.witness_region
  }

  lifecycle {
    precondition {
      condition     = var.witness_region != null
      error_message = "Name a witness_region: two Regions alone have no majority when one fails."
    }
    precondition {
      condition     = var.expires_attribute == null
      error_message = "A strongly consistent table has no TTL: leave expires_attribute out."
    }
  }
}

output "table_arn" {
  value = one(concat(aws_dynamodb_table.locks[*].arn, aws_dynamodb_table.locks_in_several_regions[*].arn))
}
