-- The business tables of the two example actions. An adopter who deletes the folder `examples` may drop them.

-- What a case has been refunded so far, and the total of its order once a decision has stated it. The row is also what
-- two refunds of one case wait for.
CREATE TABLE refund_case (
  tenant_id text COLLATE "C" NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  order_total numeric,
  refunded numeric NOT NULL,
  CONSTRAINT refund_case_pkey PRIMARY KEY (tenant_id, subject_type, subject_id),
  CONSTRAINT refund_case_within_total CHECK (refunded <= order_total),
  CONSTRAINT refund_case_lengths CHECK (char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255)
);

CREATE TABLE refund (
  tenant_id text COLLATE "C" NOT NULL,
  refund_id uuid NOT NULL,
  decision_id uuid NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  amount numeric,
  currency text,
  CONSTRAINT refund_pkey PRIMARY KEY (tenant_id, refund_id),
  CONSTRAINT refund_decision_once UNIQUE (tenant_id, decision_id),
  CONSTRAINT refund_of_decision FOREIGN KEY (tenant_id, decision_id) REFERENCES decision_record (tenant_id, decision_id),
  CONSTRAINT refund_amount_is_not_negative CHECK (amount >= 0),
  CONSTRAINT refund_lengths CHECK (char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255 AND octet_length(currency) <= 262144)
);

CREATE TABLE sar_filing (
  tenant_id text COLLATE "C" NOT NULL,
  filing_id uuid NOT NULL,
  decision_id uuid NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  reporting_period text COLLATE "C",
  CONSTRAINT sar_filing_pkey PRIMARY KEY (tenant_id, filing_id),
  CONSTRAINT sar_filing_lengths CHECK (char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255 AND char_length(reporting_period) BETWEEN 1 AND 10),
  CONSTRAINT sar_filing_once UNIQUE (tenant_id, subject_type, subject_id, reporting_period),
  CONSTRAINT sar_filing_of_decision FOREIGN KEY (tenant_id, decision_id) REFERENCES decision_record (tenant_id, decision_id)
);

ALTER TABLE refund_case ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE refund ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sar_filing ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON refund_case USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
CREATE POLICY tenant_isolation ON refund USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
CREATE POLICY tenant_isolation ON sar_filing USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE ON refund_case TO decision_ledger_service;
GRANT SELECT, INSERT ON refund, sar_filing TO decision_ledger_service;
