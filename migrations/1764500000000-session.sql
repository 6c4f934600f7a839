-- The session a request works in, and the role it works as.
--
-- Operator: run as the owner of the database. The role decision_ledger_service must exist, or the owner must be allowed
-- to create it; docs/operating.md gives the two statements. Nothing is locked; the schema is empty before this file.

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'decision_ledger_service') THEN
    CREATE ROLE decision_ledger_service NOLOGIN;
    GRANT decision_ledger_service TO CURRENT_USER;
  END IF;
END $$;

GRANT USAGE ON SCHEMA public TO decision_ledger_service;

-- The tenant of the transaction, as row-level security sees it. A pooled session whose transaction-local setting has
-- ended reads '' rather than NULL, so both mean: no tenant, and no row.
CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('app.tenant', true), '');

-- The one spelling of a time: RFC 3339, UTC, microseconds.
CREATE FUNCTION rfc3339(at timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- The service compares the schema with the one it was built for before it says that it is ready.
GRANT SELECT ON schema_migration TO decision_ledger_service;
