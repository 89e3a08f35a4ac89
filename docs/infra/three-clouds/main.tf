# One lock over three clouds: a table of DynamoDB, a container of Azure and a bucket of Google. Its stores make a quorum: a lock
# is held where two of the three say so, and one cloud may be away.
#
# Log in to each cloud first: `aws sso login` or AWS_PROFILE, `az login`, `gcloud auth application-default login`. The login of
# Azure needs the role `Owner` or `User Access Administrator` on the resource group, since it grants a role.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.22"
    }
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.9"
    }
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0"
    }
  }
}

variable "name" {
  description = "The name of the table, the account and the bucket: lowercase letters and digits, unused by anybody else."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9]{3,24}$", var.name))
    error_message = "A storage account of Azure has a name of 3 to 24 lowercase letters and digits."
  }
}

variable "aws_region" {
  type    = string
  default = "eu-west-1"
}

variable "aws_role" {
  description = "The name of the role of the workers in AWS."
  type        = string
}

variable "azure_subscription_id" {
  type = string
}

variable "azure_resource_group" {
  description = "A resource group that exists."
  type        = string
}

variable "azure_location" {
  type    = string
  default = "westeurope"
}

variable "azure_principal_id" {
  description = "The object id of the identity of the workers in Entra."
  type        = string
}

variable "google_project" {
  type = string
}

variable "google_location" {
  type    = string
  default = "europe-west4"
}

variable "google_member" {
  description = "The identity of the workers, such as serviceAccount:jobs@acme.iam.gserviceaccount.com."
  type        = string
}

provider "aws" {
  region = var.aws_region
}

# The account takes no keys, so that Terraform makes its container with the login, too.
provider "azurerm" {
  features {}
  subscription_id     = var.azure_subscription_id
  storage_use_azuread = true
}

provider "google" {
  project = var.google_project
}

resource "aws_dynamodb_table" "locks" {
  name         = var.name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "key"

  attribute {
    name = "key"
    type = "S"
  }

  deletion_protection_enabled = true
}

resource "aws_iam_policy" "locks" {
  name = "${var.name}-locks"
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DescribeTable"]
      Resource = aws_dynamodb_table.locks.arn
    }]
  })
}

resource "aws_iam_role_policy_attachment" "locks" {
  role       = var.aws_role
  policy_arn = aws_iam_policy.locks.arn
}

module "azure" {
  source         = "../azure"
  account        = var.name
  resource_group = var.azure_resource_group
  location       = var.azure_location
  principal_id   = var.azure_principal_id
}

module "google" {
  source   = "../gcs"
  bucket   = var.name
  location = var.google_location
  member   = var.google_member
}

# Once, while nobody holds a lock: `leasehold quorum init` with these three.
output "stores" {
  value = "dynamodb://${aws_dynamodb_table.locks.name}?region=${var.aws_region} ${module.azure.store} ${module.google.store}"
}
