# A container for locks in Azure Cosmos DB, and the right to take them for one identity.

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 4.0"
    }
  }
}

variable "account" {
  description = "The name of the account, which no other account of Azure may have."
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

# Bounded staleness is what a node of a quorum needs. One region writes: of several the last one would win.
resource "azurerm_cosmosdb_account" "locks" {
  name                             = var.account
  resource_group_name              = var.resource_group
  location                         = var.location
  offer_type                       = "Standard"
  kind                             = "GlobalDocumentDB"
  multiple_write_locations_enabled = false
  # Identities only, no account keys.
  local_authentication_disabled = true

  capabilities {
    name = "EnableServerless"
  }

  consistency_policy {
    consistency_level       = "BoundedStaleness"
    max_interval_in_seconds = 5
    max_staleness_prefix    = 100
  }

  geo_location {
    location          = var.location
    failover_priority = 0
  }
}

resource "azurerm_cosmosdb_sql_database" "locks" {
  name                = "locks"
  resource_group_name = var.resource_group
  account_name        = azurerm_cosmosdb_account.locks.name
}

# Without a time to live: a lock that is deleted has forgotten its token.
resource "azurerm_cosmosdb_sql_container" "locks" {
  name                = "locks"
  resource_group_name = var.resource_group
  account_name        = azurerm_cosmosdb_account.locks.name
  database_name       = azurerm_cosmosdb_sql_database.locks.name
  partition_key_paths = ["/id"]

  # Nothing but ids is searched for.
  indexing_policy {
    indexing_mode = "consistent"

    included_path {
      path = "/id/?"
    }

    excluded_path {
      path = "/*"
    }
  }
}

resource "azurerm_cosmosdb_sql_role_assignment" "locks" {
  resource_group_name = var.resource_group
  account_name        = azurerm_cosmosdb_account.locks.name
  # Cosmos DB Built-in Data Contributor.
  role_definition_id = "${azurerm_cosmosdb_account.locks.id}/sqlRoleDefinitions/00000000-0000-0000-0000-000000000002"
  principal_id       = var.principal_id
  scope              = azurerm_cosmosdb_account.locks.id
}

output "store" {
  value = "cosmos://${azurerm_cosmosdb_account.locks.name}/locks/${azurerm_cosmosdb_sql_container.locks.name}"
}
