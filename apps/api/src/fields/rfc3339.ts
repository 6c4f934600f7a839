const FORM = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,6})?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** PostgreSQL reads offsets up to this many hours; the widest in use is 14. */
const WIDEST_OFFSET_HOURS = 15;

/**
 * Whether a text is a time of RFC 3339, section 5.6, that exists and is one in UTC too: from the year 1 to 9999. Leap
 * seconds are not taken.
 */
export function isRfc3339(text: string): boolean {
  const match = FORM.exec(text);
  if (match === null) return false;
  const numbers = match.slice(1).map((part) => (part === undefined || part === '+' || part === '-' ? 0 : Number(part)));
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, , offsetHours = 0, offsetMinutes = 0] =
    numbers;
  const offset = (match[7] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes);
  const inUtc = utc(year, month, day, hour, minute - offset).getUTCFullYear();
  const isDay = within(month, 1, 12) && within(day, 1, utc(year, month + 1, 0).getUTCDate());
  const isTime = within(hour, 0, 23) && within(minute, 0, 59) && within(second, 0, 59);
  const isOffset = within(offsetHours, 0, WIDEST_OFFSET_HOURS) && within(offsetMinutes, 0, 59);
  return isDay && isTime && isOffset && within(inUtc, 1, 9999);
}

const within = (value: number, least: number, most: number): boolean => value >= least && value <= most;

/** `Date.UTC` reads the years 0 to 99 as 1900 to 1999, so the year is set on its own. */
function utc(year: number, month: number, day: number, hour = 0, minute = 0): Date {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute);
  return date;
}
