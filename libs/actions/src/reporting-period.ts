const FORM = /^(\d{4})(?:-(?:(H[12])|(Q[1-4])|W(\d{2})|(\d{2})(?:-(\d{2}))?))?$/;

/**
 * Whether a text is a reporting period: `YYYY`, `YYYY-H1..2`, `YYYY-Q1..4`, `YYYY-MM`, `YYYY-Www` (ISO 8601; week 53 only
 * in years that have one) or `YYYY-MM-DD` (a day that exists).
 */
export function isReportingPeriod(text: string): boolean {
  const match = FORM.exec(text);
  if (match === null) return false;
  const [, yearText, , , week, month, day] = match;
  const year = Number(yearText);
  if (week !== undefined) return Number(week) >= 1 && Number(week) <= isoWeeksIn(year);
  if (month === undefined) return true;
  if (Number(month) < 1 || Number(month) > 12) return false;
  return day === undefined || (Number(day) >= 1 && Number(day) <= daysIn(year, Number(month)));
}

/** A date's ordinary `Date.UTC` reads the years 0 to 99 as 1900 to 1999, so the year is set on its own. */
function utc(year: number, month: number, day: number): Date {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date;
}

function daysIn(year: number, month: number): number {
  return utc(year, month + 1, 0).getUTCDate();
}

/** A year has 53 ISO weeks when it begins or ends on a Thursday (ISO 8601-1, 3.1.1.23: week 1 holds the first Thursday). */
function isoWeeksIn(year: number): 52 | 53 {
  const THURSDAY = 4;
  return utc(year, 1, 1).getUTCDay() === THURSDAY || utc(year, 12, 31).getUTCDay() === THURSDAY ? 53 : 52;
}
