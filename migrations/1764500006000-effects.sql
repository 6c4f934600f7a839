-- What changed in the system of record. For a declarative action this row is the business write.

CREATE TABLE effect (
  tenant_id text COLLATE "C" NOT NULL,
  effect_id uuid NOT NULL,
  decision_id uuid NOT NULL,
  action text COLLATE "C" NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  reporting_period text COLLATE "C",
  place text COLLATE "C",
  applied_at timestamptz NOT NULL,
  CONSTRAINT effect_pkey PRIMARY KEY (effect_id, tenant_id),
  -- place is NULL where the action does not say "once": NULLs are distinct, so the one index both keeps the place
  -- unique and finds everything done to a subject.
  CONSTRAINT effect_place_once UNIQUE (subject_id, subject_type, action, place, tenant_id),
  CONSTRAINT effect_of_decision FOREIGN KEY (tenant_id, decision_id) REFERENCES decision_record (tenant_id, decision_id),
  CONSTRAINT effect_lengths CHECK (char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255
    AND char_length(subject_id) BETWEEN 1 AND 255 AND char_length(reporting_period) BETWEEN 1 AND 10 AND char_length(place) <= 10)
);

ALTER TABLE effect ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON effect
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON effect TO decision_ledger_service;

-- The decision that holds the place a request wants: that of the subject, or of the subject and the period. It looks at
-- the periods too, not only at the places, so effects from before the action said "once" count.
CREATE FUNCTION place_holder(p_tenant text, p_row decision_row) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT e.decision_id FROM effect e
     WHERE e.tenant_id = p_tenant AND e.subject_type = p_row.subject_type AND e.subject_id = p_row.subject_id
       AND e.action = p_row.action AND (p_row.place = '' OR e.reporting_period = p_row.place)
     ORDER BY e.applied_at, e.effect_id
     LIMIT 1);
END $$;

-- Applies the effects of the recorded decisions, save those whose place is taken. Gives back the decisions whose effect
-- was applied. Written in the order of the places: see claim_keys.
CREATE FUNCTION apply_effects(p_tenant text, p_rows decision_row[], p_recorded uuid[], p_at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  v_applied uuid[];
BEGIN
  IF cardinality(p_recorded) = 0 THEN RETURN '{}'; END IF;
  WITH applied AS (
    INSERT INTO effect AS e
      (tenant_id, effect_id, decision_id, action, subject_type, subject_id, reporting_period, place, applied_at)
    SELECT p_tenant, r.effect_id, r.decision_id, r.action, r.subject_type, r.subject_id, r.reporting_period, r.place, p_at
      FROM unnest(p_rows) r
     WHERE r.decision_id = ANY (p_recorded)
       -- The constraint below decides between rivals of one moment; this finds effects applied under older rules.
       AND (r.place IS NULL OR place_holder(p_tenant, r) IS NULL)
     ORDER BY r.subject_type, r.subject_id, r.action, r.place, r.ordinal
    ON CONFLICT ON CONSTRAINT effect_place_once DO NOTHING
    RETURNING e.decision_id
  )
  SELECT coalesce(array_agg(decision_id), '{}') INTO v_applied FROM applied;
  RETURN v_applied;
END $$;
