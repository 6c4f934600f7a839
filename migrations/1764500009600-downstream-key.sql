-- What a decision is called in the systems that it calls: whoever has only the key that a provider shows can find the
-- decision by it, whichever form it was passed on in.
--
-- Operator: adds a column and an index to decision_record, and fills the column in for the decisions with an effect outside
-- that are there already; the table is locked meanwhile.

-- The first 20 bytes of what every form of a downstream key is made from. The convert_to is immutable for what it is given
-- here: a slug and printable ASCII.
CREATE FUNCTION downstream_digest(p_tenant text, p_key_source text, p_key text, p_content_hash bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE p_key_source WHEN 'content' THEN p_content_hash ELSE substr(sha256(convert_to(p_tenant || chr(31) || p_key, 'UTF8')), 1, 20) END;

-- The one form that can be made from each of the others: 122 of the first 128 bits, with the version and the variant of a
-- random UUID (RFC 9562, section 5.4).
CREATE FUNCTION downstream_uuid4(p_digest bytea) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN encode(set_byte(set_byte(substr(p_digest, 1, 16), 6, get_byte(p_digest, 6) & 15 | 64), 8, get_byte(p_digest, 8) & 63 | 128), 'hex')::uuid;

-- NULL for a decision whose effect is in this database: its key goes nowhere, and its row pays nothing for this index. A
-- column and no index on an expression, because row-level security lets no function be looked up that is not leakproof.
ALTER TABLE decision_record ADD COLUMN downstream_uuid4 uuid;
CREATE INDEX decision_record_by_downstream_key ON decision_record (downstream_uuid4, tenant_id) WHERE downstream_uuid4 IS NOT NULL;

CREATE FUNCTION set_downstream_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.downstream_uuid4 := downstream_uuid4(downstream_digest(NEW.tenant_id, NEW.key_source, NEW.idem_key, NEW.content_hash));
  RETURN NEW;
END $$;

-- Content that may come once is claimed by content_once where the effect is in this database, and by content_hold where it is
-- outside: so content_once is NULL for every decision outside (and where the same content is allowed again).
CREATE TRIGGER decision_record_downstream_key BEFORE INSERT ON decision_record
  FOR EACH ROW WHEN (NEW.content_once IS NULL) EXECUTE FUNCTION set_downstream_key();

-- The owner, too, sees one tenant at a time.
DO $$
DECLARE
  v_tenants text[];
  v_tenant text;
BEGIN
  PERFORM set_config('app.tenant', '*', true);
  SELECT coalesce(array_agg(t.tenant_id), '{}') INTO v_tenants FROM tenant t;
  FOREACH v_tenant IN ARRAY v_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    UPDATE decision_record d
       SET downstream_uuid4 = downstream_uuid4(downstream_digest(d.tenant_id, d.key_source, d.idem_key, d.content_hash))
     WHERE d.tenant_id = v_tenant AND d.content_once IS NULL;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
END $$;
