-- A decision outside that failed stands in its key's record, until the key goes on to another decision: to one that carries the
-- same content by then, or to a new one under an action that is transactional now. From then on it stands here, so that every
-- list still has it.
--
-- Operator: reads every decision once.

CREATE TABLE abandoned_decision (
  tenant_id text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  CONSTRAINT abandoned_decision_pkey PRIMARY KEY (decision_id, tenant_id)
);

ALTER TABLE abandoned_decision ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON abandoned_decision
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON abandoned_decision TO decision_ledger_service;

CREATE FUNCTION note_abandoned() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO abandoned_decision (tenant_id, decision_id) VALUES (OLD.tenant_id, OLD.decision_id);
  RETURN NULL;
END $$;

CREATE TRIGGER note_abandoned_by_update AFTER UPDATE OF decision_id ON idempotency_record
  FOR EACH ROW WHEN (OLD.status = 'failed' AND NEW.decision_id <> OLD.decision_id) EXECUTE FUNCTION note_abandoned();
CREATE TRIGGER note_abandoned_by_delete AFTER DELETE ON idempotency_record
  FOR EACH ROW WHEN (OLD.status = 'failed') EXECUTE FUNCTION note_abandoned();

-- What is there already. Row-level security holds for the owner too, so each tenant is looked through in its own session.
DO $$
DECLARE
  v_tenants text[];
  v_tenant text;
BEGIN
  PERFORM set_config('app.tenant', '*', true);
  SELECT coalesce(array_agg(t.tenant_id), '{}') INTO v_tenants FROM tenant t;
  FOREACH v_tenant IN ARRAY v_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    INSERT INTO abandoned_decision (tenant_id, decision_id)
    SELECT d.tenant_id, d.decision_id
      FROM decision_record d
      LEFT JOIN recorded_decision f ON f.decision_id = d.decision_id AND f.tenant_id = d.tenant_id
      LEFT JOIN idempotency_record i ON i.idem_key = d.idem_key AND i.tenant_id = d.tenant_id AND i.decision_id = d.decision_id
     WHERE d.tenant_id = v_tenant AND f.decision_id IS NULL AND i.decision_id IS NULL;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
END $$;
