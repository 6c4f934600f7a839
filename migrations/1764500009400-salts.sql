-- The salts of an entry: three times 32 random bytes, for the digests of its params, its note and its result. With the salt one
-- can check a payload against its digest; without it nothing can be guessed from the digest, also when the payload is erased.
--
-- Operator: rewrites the table of ledger entries once while writers wait.

-- 32 bytes without an extension: two random UUIDs hold 244 random bits between them.
CREATE FUNCTION random_salt() RETURNS bytea LANGUAGE sql VOLATILE
  RETURN sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

ALTER TABLE ledger_entry
  ADD COLUMN params_salt bytea NOT NULL DEFAULT random_salt(),
  ADD COLUMN note_salt bytea NOT NULL DEFAULT random_salt(),
  ADD COLUMN result_salt bytea NOT NULL DEFAULT random_salt(),
  ADD CONSTRAINT ledger_entry_salts CHECK (octet_length(params_salt) = 32 AND octet_length(note_salt) = 32 AND octet_length(result_salt) = 32);
