-- Leaves are asked for by their keys, so statistics of their text serve nobody; and until a log is large, autovacuum made them
-- anew every few seconds, from as many leaves as it may look at.
--
-- Operator: touches no row; waits for whoever seals, and is over at once.
ALTER TABLE log_leaf ALTER COLUMN leaf SET STATISTICS 0;
ALTER TABLE log_leaf SET (autovacuum_analyze_scale_factor = 1);
