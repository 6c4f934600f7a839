const FORM = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,6})?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

/** PostgreSQL reads offsets up to this many hours; the widest in use is 14. */
const WIDEST_OFFSET_HOURS = 15;

/** Whether a text is a time of RFC 3339, section 5.6, that exists, from the year 1 on; leap seconds are not taken. */
export function isRfc3339(text: string): boolean {
  const match = FORM.exec(text);
  if (match === null) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, offsetHours = 0, offsetMinutes = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const daysInMonth = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  return (
    year >= 1 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysInMonth &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59 &&
    offsetHours <= WIDEST_OFFSET_HOURS &&
    offsetMinutes <= 59
  );
}
