-- Who may call: tenants, and the credentials that stand for a tenant and a role.
--
-- Text that identifies something is compared in the "C" collation everywhere in this schema: a unique index must not
-- depend on the operating system's idea of a language, which changes with an upgrade. The tenant is part of every key, and
-- the selective column comes before it: on a young table, whose statistics are not there yet, PostgreSQL would otherwise
-- find every index equally good and may pick one that reads the whole tenant.

CREATE TABLE tenant (
  tenant_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT tenant_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT tenant_slug CHECK (tenant_id ~ '^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$')
);

-- The operator belongs to no tenant. Its credentials carry '*', which no tenant can be called, so that every row has
-- one isolation boundary and the tenant stays part of the key.
CREATE TABLE credential (
  tenant_id text COLLATE "C" NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  role text NOT NULL,
  name text NOT NULL,
  secret_sha256 bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  CONSTRAINT credential_pkey PRIMARY KEY (credential_id, tenant_id),
  CONSTRAINT credential_role CHECK (role IN ('operator', 'admin', 'orchestrator', 'auditor')),
  CONSTRAINT credential_operator_has_no_tenant CHECK ((role = 'operator') = (tenant_id = '*')),
  CONSTRAINT credential_secret_is_sha256 CHECK (octet_length(secret_sha256) = 32),
  CONSTRAINT credential_lengths CHECK (char_length(credential_id) BETWEEN 1 AND 64 AND char_length(name) BETWEEN 1 AND 255)
);

CREATE INDEX credential_by_tenant ON credential (tenant_id, created_at);

ALTER TABLE tenant ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE credential ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant_isolation ON tenant
  USING (tenant_id = current_tenant() OR current_tenant() = '*')
  WITH CHECK (current_tenant() = '*');

-- A request is authenticated before its tenant is known: the session then names the one credential that it may read.
CREATE POLICY tenant_isolation ON credential
  USING (tenant_id = current_tenant() OR credential_id = nullif(current_setting('app.credential', true), ''))
  WITH CHECK (tenant_id = current_tenant());

GRANT SELECT, INSERT ON tenant TO decision_ledger_service;
GRANT SELECT, INSERT ON credential TO decision_ledger_service;
GRANT UPDATE (revoked_at, last_used_at) ON credential TO decision_ledger_service;

-- The credential with this id, valid or not, and what the caller needs to judge it by the database's clock.
CREATE FUNCTION find_credential(p_credential_id text)
  RETURNS TABLE (tenant_id text, role text, secret_sha256 bytea, live boolean, expires_in_ms double precision)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.credential', p_credential_id, true);
  RETURN QUERY
    SELECT c.tenant_id, c.role, c.secret_sha256,
           c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > now()),
           (extract(epoch FROM c.expires_at - now()) * 1000)::double precision
      FROM credential c
     WHERE c.credential_id = p_credential_id;
END $$;
