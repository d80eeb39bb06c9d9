"""Read access for scripts: tokens, the endpoints under `/api/v1/`, their OpenAPI document and its page."""
