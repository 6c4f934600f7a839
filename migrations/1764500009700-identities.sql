-- Callers whom an OpenID provider vouches for: a credential without a secret stands for each, so that what they did names a row.
--
-- Operator: the table is small, and locked while two columns, a unique index and two checks are added to it.
--
-- The row is made when a subject first calls in a role. It outlives the role: the ledger names it for good.

ALTER TABLE credential
  -- Part of what identifies a row from here on.
  ALTER COLUMN role TYPE text COLLATE "C",
  ADD COLUMN issuer text COLLATE "C",
  ADD COLUMN subject text COLLATE "C",
  ADD CONSTRAINT credential_identity_lengths CHECK (char_length(issuer) BETWEEN 1 AND 512 AND char_length(subject) BETWEEN 1 AND 255),
  -- 32 zero bytes are no secret: nobody knows what hashes to them. The operator has no tenant, so no provider speaks for it.
  ADD CONSTRAINT credential_identity_has_no_secret CHECK (
    (issuer IS NULL) = (subject IS NULL)
    AND (issuer IS NULL OR (role <> 'operator' AND secret_sha256 = decode(repeat('00', 32), 'hex')))),
  ADD CONSTRAINT credential_one_for_each_identity UNIQUE (subject, issuer, role, tenant_id);

-- As before, and blind to credentials that have no secret, whatever somebody sends as one.
CREATE OR REPLACE FUNCTION find_credential(p_credential_id text)
  RETURNS TABLE (tenant_id text, role text, secret_sha256 bytea, live boolean, expires_in_ms double precision)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.credential', p_credential_id, true);
  RETURN QUERY
    SELECT c.tenant_id, c.role, c.secret_sha256,
           c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > now()),
           (extract(epoch FROM c.expires_at - now()) * 1000)::double precision
      FROM credential c
     WHERE c.credential_id = p_credential_id AND c.issuer IS NULL;
END $$;

-- The credential of an identity in a role, made if it is not there yet: p_credential_id is then its id. NULL if there is no
-- such tenant, or if the tenant has revoked the subject: in any role, since the role is the provider's to change.
CREATE FUNCTION admit_identity(p_tenant text, p_issuer text, p_subject text, p_role text, p_credential_id text)
  RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_credential_id text;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  PERFORM FROM credential c
    WHERE c.subject = p_subject AND c.issuer = p_issuer AND c.tenant_id = p_tenant AND c.revoked_at IS NOT NULL;
  IF FOUND THEN
    RETURN NULL;
  END IF;

  SELECT c.credential_id INTO v_credential_id FROM credential c
   WHERE c.subject = p_subject AND c.issuer = p_issuer AND c.role = p_role AND c.tenant_id = p_tenant;
  IF FOUND THEN
    RETURN v_credential_id;
  END IF;

  INSERT INTO credential (tenant_id, credential_id, role, name, secret_sha256, issuer, subject)
  SELECT t.tenant_id, p_credential_id, p_role, p_subject, decode(repeat('00', 32), 'hex'), p_issuer, p_subject
    FROM tenant t
   WHERE t.tenant_id = p_tenant
  ON CONFLICT ON CONSTRAINT credential_one_for_each_identity DO NOTHING;
  -- Of two that came at once, the second waited above and now reads what the first has made.
  SELECT c.credential_id INTO v_credential_id FROM credential c
   WHERE c.subject = p_subject AND c.issuer = p_issuer AND c.role = p_role AND c.tenant_id = p_tenant;
  RETURN v_credential_id;
END $$;
