package idempotency_test

import (
	"errors"
	"net/http"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/idempotency"
)

// shopping is the example of docs/idempotency.md.
func shopping(charge http.Handler) (http.Handler, error) {
	client, err := leasehold.Connect("redis://locks")
	if err != nil {
		return nil, err
	}
	once, err := idempotency.Middleware(client, idempotency.Options{
		Principal: func(r *http.Request) (string, error) {
			user := r.Header.Get("X-User-Id") // set by the proxy that checks logins
			if user == "" {
				return "", errors.New("a request without a user")
			}
			return user, nil
		},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charge", once(charge)) // with chi: router.Use(once)
	return mux, nil
}

func ExampleMiddleware() {
	handler, err := shopping(http.NotFoundHandler())
	if err != nil {
		return
	}
	_ = http.ListenAndServe("127.0.0.1:8080", handler)
}
