module code.invalid/leasehold/go

go 1.25
