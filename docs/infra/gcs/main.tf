# A bucket for locks in Google Cloud Storage, and the right to take them for one identity.

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0"
    }
  }
}

variable "bucket" {
  description = "The name of the bucket, which no other bucket of Google may have."
  type        = string
}

variable "location" {
  type    = string
  default = "EU"
}

variable "member" {
  description = "The identity of the workers, such as serviceAccount:jobs@acme.iam.gserviceaccount.com."
  type        = string
}

resource "google_storage_bucket" "locks" {
  name                        = var.bucket
  location                    = var.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  # Every renewal would leave an object that is paid for, for a week.
  soft_delete_policy {
    retention_duration_seconds = 0
  }
}

resource "google_storage_bucket_iam_member" "locks" {
  bucket = google_storage_bucket.locks.name
  role   = "roles/storage.objectUser"
  member = var.member
}

output "store" {
  value = "gs://${google_storage_bucket.locks.name}"
}
