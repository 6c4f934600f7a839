/** Text that JSON writers have their own ways with. */
export const ODD = [
  '\u0001\u001f\u007f',
  '\b\t\n\f\r',
  '\u2028\u2029',
  '"\\/',
  '🦊👩‍👩‍👧',
  'é e\u0301',
  '</script>',
  '\ufeff',
  '\u0080\u009f',
  '\uffff',
  ' ',
];
