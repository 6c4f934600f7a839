-- The inventory of what may be decided. A change is a new version; a version is never altered, because decisions point
-- at the one they were made under.

CREATE TABLE action_version (
  tenant_id text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  rules text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  credential_id text COLLATE "C",
  CONSTRAINT action_version_pkey PRIMARY KEY (tenant_id, action, version),
  CONSTRAINT action_version_name CHECK (action ~ '^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$' AND char_length(action) <= 64),
  CONSTRAINT action_version_counts_from_one CHECK (version >= 1),
  CONSTRAINT action_version_rules_length CHECK (octet_length(rules) <= 1048576)
);

ALTER TABLE action_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON action_version
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON action_version TO decision_ledger_service;
