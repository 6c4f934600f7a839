-- Who read or exported what: one row before the answer's first byte, and one at its end. Both are only ever added to.

CREATE TABLE access (
  tenant_id text COLLATE "C" NOT NULL,
  access_id uuid NOT NULL,
  at timestamptz NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  request_id text NOT NULL,
  method text NOT NULL,
  route text COLLATE "C" NOT NULL,
  filters text NOT NULL,
  CONSTRAINT access_pkey PRIMARY KEY (access_id, tenant_id),
  CONSTRAINT access_lengths CHECK (char_length(credential_id) BETWEEN 1 AND 64 AND char_length(request_id) BETWEEN 1 AND 128 AND char_length(method) BETWEEN 1 AND 10
    AND char_length(route) BETWEEN 1 AND 255 AND octet_length(filters) <= 65536)
);

-- An access without an end is still under way, or was broken off without notice.
CREATE TABLE access_end (
  tenant_id text COLLATE "C" NOT NULL,
  access_id uuid NOT NULL,
  rows bigint NOT NULL,
  finished boolean NOT NULL,
  at timestamptz NOT NULL,
  CONSTRAINT access_end_pkey PRIMARY KEY (access_id, tenant_id),
  CONSTRAINT access_end_of_access FOREIGN KEY (tenant_id, access_id) REFERENCES access (tenant_id, access_id),
  CONSTRAINT access_end_rows CHECK (rows >= 0)
);

CREATE INDEX access_by_time ON access (tenant_id, at, access_id);
CREATE INDEX access_by_credential ON access (credential_id, tenant_id, at);

ALTER TABLE access ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE access_end ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON access
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
CREATE POLICY tenant_isolation ON access_end
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON access, access_end TO decision_ledger_service;

-- Records an access in a transaction of its own: its commit is durable before the answer's first byte. What was read whole by
-- then has its end too.
CREATE FUNCTION note_access(p_tenant text, p_access_id uuid, p_credential_id text, p_request_id text, p_method text, p_route text, p_filters text,
                            p_rows bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  INSERT INTO access (tenant_id, access_id, at, credential_id, request_id, method, route, filters)
  VALUES (p_tenant, p_access_id, clock_timestamp(), p_credential_id, p_request_id, p_method, p_route, p_filters);
  IF p_rows IS NOT NULL THEN PERFORM note_access_end(p_tenant, p_access_id, p_rows, true); END IF;
END $$;

CREATE FUNCTION note_access_end(p_tenant text, p_access_id uuid, p_rows bigint, p_finished boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  INSERT INTO access_end (tenant_id, access_id, rows, finished, at) VALUES (p_tenant, p_access_id, p_rows, p_finished, clock_timestamp());
END $$;
