-- The log: a Merkle tree for each tenant over its ledger entries, and the checkpoints that were signed of it. An entry is marked
-- in the statement that appends it; giving it its place in the tree is the worker's, afterwards.
--
-- Operator: marks every ledger entry that is there once while writers wait, about ten seconds for a million; the worker seals
-- them afterwards, a few thousand a second. See docs/operating.md for the key before you start a worker on another machine.

-- Committed, and without a place in the tree. Found by this row and never by an id or a time: what commits late is not missed.
CREATE TABLE unsealed_entry (
  tenant_id text COLLATE "C" NOT NULL,
  recorded_at timestamptz NOT NULL,
  ledger_entry_id uuid NOT NULL,
  CONSTRAINT unsealed_entry_pkey PRIMARY KEY (tenant_id, recorded_at, ledger_entry_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The leaves of the tree, in its order: the bytes that were hashed.
CREATE TABLE log_leaf (
  tenant_id text COLLATE "C" NOT NULL,
  leaf_index bigint NOT NULL,
  ledger_entry_id uuid NOT NULL,
  leaf text NOT NULL,
  CONSTRAINT log_leaf_pkey PRIMARY KEY (tenant_id, leaf_index),
  CONSTRAINT log_leaf_entry_once UNIQUE (ledger_entry_id, tenant_id),
  CONSTRAINT log_leaf_of_entry FOREIGN KEY (tenant_id, ledger_entry_id) REFERENCES ledger_entry (tenant_id, ledger_entry_id),
  CONSTRAINT log_leaf_index CHECK (leaf_index >= 0),
  CONSTRAINT log_leaf_length CHECK (octet_length(leaf) BETWEEN 2 AND 65535)
);

-- The tree as C2SP tiles: of each the hashes that there are so far, at most 256. They only grow, so a partial tile that was ever
-- published is the beginning of what is here.
CREATE TABLE log_tile (
  tenant_id text COLLATE "C" NOT NULL,
  level integer NOT NULL,
  tile_index bigint NOT NULL,
  hashes bytea NOT NULL,
  CONSTRAINT log_tile_pkey PRIMARY KEY (tenant_id, level, tile_index),
  CONSTRAINT log_tile_place CHECK (level BETWEEN 0 AND 63 AND tile_index >= 0),
  CONSTRAINT log_tile_length CHECK (octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0)
);

-- Hashes cannot be compressed.
ALTER TABLE log_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- The state of the tree. Whoever makes it grow or signs it holds this row. What is signed never goes beyond what has grown.
CREATE TABLE log_tree (
  tenant_id text COLLATE "C" NOT NULL,
  -- Which tree this is, wherever a backup of it is restored.
  log_id uuid NOT NULL,
  tree_size bigint NOT NULL,
  root bytea NOT NULL,
  signed_size bigint NOT NULL,
  checkpoint text,
  signed_at timestamptz,
  CONSTRAINT log_tree_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT log_tree_sizes CHECK (signed_size BETWEEN 0 AND tree_size),
  CONSTRAINT log_tree_root CHECK (octet_length(root) = 32),
  CONSTRAINT log_tree_signed CHECK ((checkpoint IS NULL) = (signed_at IS NULL) AND (checkpoint IS NOT NULL OR signed_size = 0)),
  CONSTRAINT log_tree_lengths CHECK (octet_length(checkpoint) BETWEEN 1 AND 65536)
);

-- The keys that checkpoints of the tenant were ever signed with, as verifiers take them.
CREATE TABLE log_key (
  tenant_id text COLLATE "C" NOT NULL,
  verifier_key text COLLATE "C" NOT NULL,
  added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT log_key_pkey PRIMARY KEY (verifier_key, tenant_id),
  CONSTRAINT log_key_lengths CHECK (char_length(verifier_key) BETWEEN 1 AND 512)
);

ALTER TABLE unsealed_entry ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON unsealed_entry
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
ALTER TABLE log_leaf ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON log_leaf
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
ALTER TABLE log_tile ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON log_tile
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
ALTER TABLE log_tree ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON log_tree
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
ALTER TABLE log_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON log_key
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());

GRANT SELECT, INSERT, DELETE ON unsealed_entry TO decision_ledger_service;
GRANT SELECT, INSERT ON log_leaf, log_key TO decision_ledger_service;
GRANT SELECT, INSERT, UPDATE (hashes) ON log_tile TO decision_ledger_service;
GRANT SELECT, INSERT, UPDATE (tree_size, root, signed_size, checkpoint, signed_at) ON log_tree TO decision_ledger_service;

-- A tree without leaves, whose root is the hash of nothing (RFC 9162, 2.1.1).
CREATE FUNCTION new_tree(p_tenant text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO log_tree (tenant_id, log_id, tree_size, root, signed_size) VALUES (p_tenant, gen_random_uuid(), 0, sha256(''), 0)
$$;

-- The tree is there as soon as its tenant is, so nobody can begin a second one.
CREATE FUNCTION plant_tree() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_session text := coalesce(current_setting('app.tenant', true), '');
BEGIN
  PERFORM set_config('app.tenant', NEW.tenant_id, true);
  PERFORM new_tree(NEW.tenant_id);
  PERFORM set_config('app.tenant', v_session, true);
  RETURN NULL;
END $$;

CREATE TRIGGER plant_tree AFTER INSERT ON tenant FOR EACH ROW EXECUTE FUNCTION plant_tree();

-- All that the write path does for the log: one narrow row an entry, no lock, no order.
CREATE FUNCTION mark_unsealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO unsealed_entry (tenant_id, recorded_at, ledger_entry_id) SELECT l.tenant_id, l.recorded_at, l.ledger_entry_id FROM appended l;
  RETURN NULL;
END $$;

CREATE TRIGGER mark_unsealed AFTER INSERT ON ledger_entry REFERENCING NEW TABLE AS appended
  FOR EACH STATEMENT EXECUTE FUNCTION mark_unsealed();

-- What is there already. Row-level security holds for the owner too, so each tenant is marked in its own session.
DO $$
DECLARE
  v_tenant text;
BEGIN
  PERFORM set_config('app.tenant', '*', true);
  FOR v_tenant IN SELECT tenant_id FROM tenant LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    PERFORM new_tree(v_tenant);
    INSERT INTO unsealed_entry (tenant_id, recorded_at, ledger_entry_id)
    SELECT l.tenant_id, l.recorded_at, l.ledger_entry_id FROM ledger_entry l WHERE l.tenant_id = v_tenant;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
END $$;

-- The tenants that have something to seal or to sign.
CREATE FUNCTION sealing_agenda(p_tenants text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
BEGIN
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    IF EXISTS (SELECT FROM unsealed_entry u WHERE u.tenant_id = v_tenant)
       OR EXISTS (SELECT FROM log_tree t WHERE t.tenant_id = v_tenant AND (t.checkpoint IS NULL OR t.signed_size < t.tree_size)) THEN
      RETURN NEXT v_tenant;
    END IF;
  END LOOP;
END $$;

-- How many entries no checkpoint covers, over all tenants, and how long the oldest of them has waited.
CREATE FUNCTION sealing_lag(p_tenants text[]) RETURNS TABLE (unsealed double precision, lag_seconds double precision) LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
  v_oldest timestamptz;
  v_of_tenant record;
BEGIN
  unsealed := 0;
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    SELECT count(*) AS waiting, min(u.recorded_at) AS oldest INTO v_of_tenant FROM unsealed_entry u WHERE u.tenant_id = v_tenant;
    unsealed := unsealed + v_of_tenant.waiting + coalesce((SELECT t.tree_size - t.signed_size FROM log_tree t WHERE t.tenant_id = v_tenant), 0);
    v_oldest := least(v_oldest, v_of_tenant.oldest);
  END LOOP;
  lag_seconds := greatest(coalesce(extract(epoch FROM clock_timestamp() - v_oldest), 0), 0);
  RETURN NEXT;
END $$;
