#!/bin/sh
# The two roles and the database, made once, when the volume is new (docs/operating.md).
set -eu
psql --username postgres --set ON_ERROR_STOP=1 --set owner_password="$OWNER_PASSWORD" --set service_password="$SERVICE_PASSWORD" <<'SQL'
CREATE ROLE decision_ledger_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE decision_ledger_service LOGIN PASSWORD :'service_password';
CREATE DATABASE decision_ledger OWNER decision_ledger_owner;
SQL
