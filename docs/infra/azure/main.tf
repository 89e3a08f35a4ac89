# A container for locks in Azure Blob Storage, and the right to take them for one identity. The provider needs
# `storage_use_azuread = true`, since the account takes no keys.

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.9"
    }
  }
}

variable "account" {
  description = "The name of the storage account, which no other account of Azure may have."
  type        = string
}

variable "resource_group" {
  description = "A resource group that exists."
  type        = string
}

variable "location" {
  type    = string
  default = "westeurope"
}

variable "principal_id" {
  description = "The object id of the managed identity or service principal of the workers."
  type        = string
}

# Without versioning and soft delete: every renewal would leave a version that is paid for.
resource "azurerm_storage_account" "locks" {
  name                            = var.account
  resource_group_name             = var.resource_group
  location                        = var.location
  account_tier                    = "Standard"
  account_replication_type        = "ZRS"
  min_tls_version                 = "TLS1_2"
  allow_nested_items_to_be_public = false
  # Identities only, no account keys.
  shared_access_key_enabled = false
}

resource "azurerm_storage_container" "locks" {
  name                  = "locks"
  storage_account_id    = azurerm_storage_account.locks.id
  container_access_type = "private"
}

resource "azurerm_role_assignment" "locks" {
  scope                = azurerm_storage_container.locks.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = var.principal_id
}

output "store" {
  value = "azblob://${azurerm_storage_account.locks.name}/${azurerm_storage_container.locks.name}"
}
